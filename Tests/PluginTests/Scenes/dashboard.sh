#: start
mkdir rules
echo 'rules: [{ name: all, path: ~/inbox/*, action: log, missing: create }]' >rules/all.yaml

#: after alight run --listen 127.0.0.1:7171
curl --silent --fail "http://127.0.0.1:$PORT/" >page.html
grep -q '<title>' page.html
finish
