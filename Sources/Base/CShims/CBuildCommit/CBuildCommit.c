#include "CBuildCommit.h"

// `git archive` writes the commit's hash here (export-subst in .gitattributes), so that a tarball contains it without
// git.
static const char archived[] = "$Format:%h$";

#define AS_TEXT(word) #word
#define TEXT(macro) AS_TEXT(macro)

const char *build_commit(void) {
    if (archived[0] != '$') return archived;
#ifdef ALIGHT_COMMIT
    return TEXT(ALIGHT_COMMIT);
#else
    return "";
#endif
}
