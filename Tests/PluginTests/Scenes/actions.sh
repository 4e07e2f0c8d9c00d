#: instead 11:27:39 texts: created /srv/in/a.txt: retry in 35 ms: the shell command exited with status 1 (attempt 1 of 5; next in 5.1 s)
mkdir -p "$HOST/srv/in"
cat >rules.yaml <<YAML
rules:
  - name: texts
    path: $HOST/srv/in/*.txt
    settle: 100ms
    retry: { delay: 1s }
    action: { shell: '[ -e "$HOME/second" ] || { touch "$HOME/second"; exit 1; }' }
YAML
alight run rules.yaml >log 2>err &
await 'grep -q ^ready: err'
echo a >"$HOST/srv/in/a.txt"
await 'grep -q succeeded log'
kill %1
wait %1
cat log
