#!/usr/bin/env bash
# Memory, start, CreateTopics and large clusters: kraftd beside Java's controller, in one run.
#   WHAT="idle start create scale"      which measures; also failover, quorum-create (3 voters),
#                           fencing, heartbeats, creates (1 and 3 voters)
#   SCALE="10000 100000 1000000"        partitions of the large clusters; without it failover runs
#                           on an empty one
#   REPEATS=3               starts of each controller; figures are medians
#   IDLE_SECONDS=20         how long each is watched when idle
#   CREATES=500             topics that are created one by one
#   MAKES="kraftd java"     whose failover and quorum-create are measured
#   ROUNDS=20               how often each leader is lost
#   TOPICS=10000            topics that 64 clients create
#   SECONDS_EACH=10         how long each load of heartbeats and creates is watched
#   RECORD=1                adds the figures to compat/bench.tsv, with the commit and the machine
#   KEEP=1                  keeps the servers' directories and logs
#   WORK=dir                scratch, on the disk that is to be measured (target/bench)
#   KRAFTD=program          another binary
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
kraftd=$(realpath "${KRAFTD:-$target/release/kraftd}")
generate=$(realpath "$target/release/examples/generate")
[ -x "$kraftd" ] || { echo "$kraftd is not built: \`make bench\` builds it and runs this." >&2; exit 1; }
compat/jars.sh 4.4.0
jars=$PWD/compat/java/jars/4.4.0
mkdir -p "${WORK:-$target/bench}"
work=$(mktemp -d "$(realpath "${WORK:-$target/bench}")/run.XXXXXX")
if [ -n "${KEEP:-}" ]; then
  echo "Everything is kept in $work."
else
  trap 'rm -rf "$work"' EXIT
fi
trap 'exit 130' INT
trap 'exit 143' TERM

javac -nowarn -d "$work/classes" -cp "$jars/*" compat/bench/*.java
load_before=$(cut -d' ' -f1 /proc/loadavg)
# shellcheck disable=SC2086 # the measures are words
java -Xmx512m -XX:+UseSerialGC -Dorg.slf4j.simpleLogger.defaultLogLevel=error \
  "-Dlog4j2.configurationFile=$PWD/compat/java/conf/log4j2-tools.properties" \
  "-Drepeats=${REPEATS:-3}" "-Didle.seconds=${IDLE_SECONDS:-20}" "-Dcreates=${CREATES:-500}" \
  "-Dscale=${SCALE:-10000 100000 1000000}" "-Dfailover.scale=${SCALE:-}" \
  "-Dfencing.scale=${SCALE:-100000 1000000}" \
  "-Drounds=${ROUNDS:-20}" "-Dtopics=${TOPICS:-10000}" "-Dseconds=${SECONDS_EACH:-10}" "-Dmakes=${MAKES:-kraftd java}" \
  "-Dkeep=${KEEP:+true}" -cp "$work/classes:$jars/*" kraftd.bench.Bench \
  "$kraftd" "$generate" "$jars" "$PWD/compat/java/conf" "$work" "$work/rows.tsv" \
  ${WHAT:-idle start create scale}
load_after=$(cut -d' ' -f1 /proc/loadavg)

commit=$(git rev-parse --short HEAD 2> /dev/null || echo unknown)
git diff --quiet HEAD 2> /dev/null || commit+=+changes
machine="$(nproc) x $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
echo
echo "kraftd $commit ($(($(stat -c %s "$kraftd") / 1000)) kB) and Java's controller of Kafka 4.4.0"
echo "Java's heap: 512 MB, scale 1 GB, from 500,000 partitions on 4 GB"
echo "machine: $machine; load1 $load_before before, $load_after after"
echo
awk -F'\t' 'BEGIN { line = "%-30s %-12s %16s %10s %10s %9s  %s\n"
    printf line, "measure", "unit", "expected", "kraftd", "Java", "times", "target" }
  { better = substr($6, 1, 1) == ">" ? $4 : $5
    worse = substr($6, 1, 1) == ">" ? $5 : $4
    ratio = better > 0 && worse > 0 ? sprintf("%.1f", better / worse) : ""
    target = $6
    if (split($6, words, " ") > 1 && $4 != "-" && ($5 != "-" || words[2] != "Java")) {
      limit = words[2] != "Java" ? words[2] : words[3] == "*" ? $5 * words[4] : $5 / words[4]
      met = words[1] == ">" ? $4 + 0 > limit + 0 : $4 + 0 < limit + 0
      target = target (met ? "  met" : "  MISSED")
    }
    printf line, $1, $2, $3, $4, $5, ratio, target }' "$work/rows.tsv"

if [ -n "${RECORD:-}" ]; then
  file=compat/bench.tsv
  [ -e "$file" ] || printf 'commit\tmachine\tload1\tmeasure\tunit\texpected\tkraftd\tjava\ttarget\n' > "$file"
  awk -v OFS='\t' -v head="$commit	$machine	$load_before-$load_after" '{ print head, $0 }' "$work/rows.tsv" >> "$file"
  echo
  echo "Added to $file."
fi
