#: start
mkdir Benchmarks
# Parses its arguments, but measures nothing.
printf '#!/bin/sh\nexec python3 "%s/Benchmarks/bench.py" "$@" --help\n' "$CHECKOUT" >Benchmarks/bench.py
chmod +x Benchmarks/bench.py
