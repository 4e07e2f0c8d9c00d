#: before $ alight jobs
cp "$RULES" rules.yaml
mkdir Scans
alight run rules.yaml >log 2>&1 &
await 'grep -q ^ready: log'
for each in letter invoice receipt; do
    echo 01234567890 >Scans/$each.pdf
    await "grep -qE '$each.*(succeeded|gave up)' log"
done
kill %1
wait %1
TERMINAL=1

#: before alight jobs --state failed --rule scans --limit 0 | cut -f 1 | xargs alight retry
cp -r .local/state/alight kept-journal

#: after alight jobs --state failed --rule scans --limit 0 | cut -f 1 | xargs alight retry
grep -q 'will be retried' "$OUT"
rm -r .local/state/alight
mv kept-journal .local/state/alight

#: before $ alight apply scans Scans
TERMINAL=
export ALIGHT_RULES=$PWD/rules.yaml
alight run rules.yaml >second-log 2>&1 &
await 'grep -q ^ready: second-log'

#: after $ alight apply scans Scans
kill %1
wait %1
