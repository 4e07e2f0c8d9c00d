#: before $ alight explain --rules rules.yaml inbox/cat.jpg
mkdir -p inbox albums
echo meow >inbox/cat.jpg
cp "$RULES" rules.yaml

#: before $ alight run rules.yaml --once --dry-run 2>/dev/null
rm -r inbox albums
mkdir inbox
echo a >inbox/a.txt
# The window opens in three hours.
cat >rules.yaml <<YAML
rules:
  - name: keep
    path: inbox/*.txt
    existing: process
    settle: 100ms
    action:
      - { use: copy, with: { to: "kept/\${name}", on_conflict: rename } }
      - exec: [gzip, "\${steps.0.outputs.0}"]
  - name: night
    path: inbox/*.txt
    existing: process
    settle: 100ms
    window: "$(date -d '+3 hours' +%H:00)-$(date -d '+5 hours' +%H:00)"
    action: log
YAML
