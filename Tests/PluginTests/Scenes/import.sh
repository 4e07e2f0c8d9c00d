#: start
mkdir -p rules Pictures/inbox inbox plugins "$HOST/etc/incron.d"
cp -r "$CHECKOUT/plugins/thumbnail" plugins/
printf '#!/bin/sh\n' >bin-lp
echo '/srv/upload IN_CLOSE_WRITE /usr/bin/gzip $@/$#' >"$HOST/etc/incron.d/uploads"

#: after alight new ~/inbox
grep -q 'lp' rules/inbox.yaml
grep -q 'use: thumbnail' "$OUT"
