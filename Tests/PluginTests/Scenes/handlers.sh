#: before openssl dgst -sha256 -hmac "$SECRET" body.json
printf '{"a":1}' >body.json
SECRET=key

#: after openssl dgst -sha256 -hmac "$SECRET" body.json
digits=$(python3 -c 'import hmac; print(hmac.new(b"key", b"{\"a\":1}", "sha256").hexdigest())')
grep -q "$digits" "$OUT"
