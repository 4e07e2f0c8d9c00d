#: start
mkdir -p in
