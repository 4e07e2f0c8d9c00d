#: start
mkdir -p rules Pictures/inbox inbox plugins "$HOST/etc/incron.d"
cp -r "$CHECKOUT/plugins/thumbnail" plugins/
printf '#!/bin/sh\n' >bin-lp
echo '/srv/upload IN_CLOSE_WRITE /usr/bin/gzip $@/$#' >"$HOST/etc/incron.d/uploads"
cat >"$HOST/etc/direvent.conf" <<'CONF'
watcher {
    path /srv/drop;
    event create;
    command "/usr/bin/gzip $file";
}
CONF

#: after alight new ~/inbox
grep -q 'lp' rules/inbox.yaml
grep -q 'use: thumbnail' "$OUT"
