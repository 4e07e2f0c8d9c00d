#: before $ alight undo --since 10m
mkdir -p Inbox .config/alight/rules
cp "$RULES" .config/alight/rules/rules.yaml
alight run >log 2>&1 &
await 'grep -q ^ready: log'
for each in bill offer; do
    echo $each >Inbox/$each.pdf
    await "grep -q '$each.*succeeded' log"
done
kill %1
wait %1
echo more >>Sorted/2026/bill.pdf
