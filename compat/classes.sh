#!/usr/bin/env bash
# Compiles our own Java helpers against the newest release's jars, when they are not up to date.
set -euo pipefail
cd "$(dirname "$0")/java"
../jars.sh 4.4.0
mkdir -p target
exec 9>target/.lock
flock 9
if [ -d target/classes ] && [ -z "$(find src jars/4.4.0 -newer target/classes -print -quit)" ]; then
  exit 0
fi
rm -rf target/classes target/classes.part
javac -nowarn -d target/classes.part -cp "jars/4.4.0/*" src/kraftd/compat/*.java
mv target/classes.part target/classes
