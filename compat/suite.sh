#!/usr/bin/env bash
# Apache Kafka's own integration tests against one kraftd a controller: `suite.sh BINARY TESTS.tsv`.
# From the environment: T (an area, or a part of the names of tests; what TESTS does not name is
# taken for a class), JOBS (classes at once), OUT (folder of the results). What is not as
# results.tsv says is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."
# What judges the run is asked first whether it can refuse one.
python3 -B compat/kafka-suite/test_compare.py --quiet
binary=$PWD/$1
tests=compat/kafka-suite/$2
out=${OUT:-target/kafka-suite/${2%.tsv}}
rm -rf "$out"
mkdir -p "$out"
if [ -z "${T:-}" ]; then
  cp "$tests" "$out/tests.tsv"
else
  awk -F'\t' -v t="$T" '$1 !~ /^#/ && ($2 == t || index($1, t))' "$tests" >"$out/tests.tsv"
  [ -s "$out/tests.tsv" ] || echo "$T" >"$out/tests.tsv"
fi
compat/kafka-suite/run-suite --controller-cmd "$binary {config}" --tests "$out/tests.tsv" \
  --out "$out" --jobs "${JOBS:-2}" --prune || [ -s "$out/results.tsv" ]
compat/kafka-suite/compare "$out/results.tsv" compat/kafka-suite/results.tsv "$out/tests.tsv"
