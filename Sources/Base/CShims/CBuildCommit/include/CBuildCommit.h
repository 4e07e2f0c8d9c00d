#pragma once

/// The beginning of the commit's name that this was built from; empty when nobody knows.
const char *build_commit(void);
