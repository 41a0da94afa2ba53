#!/usr/bin/env bash
# Brings the jars of the named Kafka releases to compat/java/jars/NAME through Maven, once.
# A run that is cut short leaves no half directory: the copy is renamed when it is whole.
set -euo pipefail
cd "$(dirname "$0")/java"
command -v java >/dev/null || { echo "kraftd's compat tests need a JDK 17 or newer: 'java' is not in PATH." >&2; exit 1; }
command -v javac >/dev/null || { echo "kraftd's compat tests need a JDK 17 or newer: 'javac' is not in PATH (a JRE is not enough)." >&2; exit 1; }
command -v mvn >/dev/null || { echo "kraftd's compat tests need Maven to fetch Kafka's jars: 'mvn' is not in PATH." >&2; exit 1; }
mkdir -p jars
exec 9>jars/.lock
flock 9
for name in "$@"; do
  if [ -d "jars/$name" ] && [ ! "$name/pom.xml" -nt "jars/$name" ]; then
    continue
  fi
  rm -rf "jars/$name" "jars/$name.part"
  mvn -q -B -f "$name/pom.xml" dependency:copy-dependencies -DincludeScope=runtime \
    -DoutputDirectory="$PWD/jars/$name.part"
  mv "jars/$name.part" "jars/$name"
  touch "jars/$name"
done
