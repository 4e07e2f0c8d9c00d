#: instead rules/photos.yaml:3:14: error: unknown event 'change'
mkdir -p rules
printf 'rules:\n  - path: in/*.jpg\n    events: [change]\n    action: log\n' >rules/photos.yaml
alight check rules || [ $? = 3 ]

#: after alight schema > rules/alight.schema.json
grep -q 'draft/2020-12' rules/alight.schema.json
