#pragma once

/// Returns the abbreviated hash of the commit of this build, or an empty string if it is unknown.
const char *build_commit(void);
