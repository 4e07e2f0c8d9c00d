#: start
mkdir -p Scans nas rules .config/alight
cat >rules/rules.yaml <<'YAML'
rules:
  - { name: scans, path: ../Scans/*, settle: 100ms, action: log }
  - { name: nas, path: ../nas/*, backend: poll, action: log }
YAML

#: instead alight 0.1.0: running, process 4711, up 2 min 5 s
alight run >log 2>&1 &
await 'grep -q ^ready: log'
alight rescan >/dev/null
await 'alight status | grep -q "on request"'
grep -rqF 'the kernel does not report all changes on ' "$CHECKOUT/Sources"
alight status | sed "s|~/nas|/mnt/nas/in|; s|$HOME/nas|/mnt/nas/in|; s/the rule sets 'backend: poll'/the kernel does not report all changes on nfs/"
NUMBERS=any

#: after curl --unix-socket "$XDG_RUNTIME_DIR/alight/control.sock" http://alight/v1/status
finish
grep -q '"paused_rules":\["scans"\]' "$OUT"
kill %1
wait %1

#: before $ ALIGHT_JOBS=5 alight config --log-level warning
printf '# Mine.\nretention:\n  period: 90d\n' >.config/alight/config.yaml
CONTROL=$ALIGHT_CONTROL
unset ALIGHT_CONTROL

#: after $ ALIGHT_JOBS=5 alight config --log-level warning
export ALIGHT_CONTROL=$CONTROL

#: before $ sudo alight check
mkdir -p "$HOST/etc/alight/rules"
cp rules/rules.yaml "$HOST/etc/alight/rules/scans.yaml"
chmod 666 "$HOST/etc/alight/rules/scans.yaml"
export ALIGHT_RULES=$HOST/etc/alight/rules
