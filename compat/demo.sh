#!/usr/bin/env bash
# kraftd as the only controller of a real Kafka broker: creates a topic, produces, consumes, shows
# the topic and the quorum. Everything happens in a temporary directory and on free ports; nothing
# is left when this ends, however it ends.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
release=4.4.0
kraftd=${KRAFTD:-${CARGO_TARGET_DIR:-$root/target}/debug/kraftd}
jars=$root/compat/java/jars/$release
limit_seconds=120
dir='' controller='' broker=''

fail() {
  echo "$1" >&2
  exit 1
}

# Ends a server, which is a process group: asks first, insists after a while.
stop() {
  local end=$((SECONDS + 20))
  kill -- "-$1" 2> /dev/null || true
  while kill -0 -- "-$1" 2> /dev/null && [ "$SECONDS" -lt "$end" ]; do sleep 0.1; done
  kill -9 -- "-$1" 2> /dev/null || true
  wait "$1" 2> /dev/null || true
}

clean_up() {
  local code=$?
  trap - EXIT INT TERM HUP
  if [ "$code" -ne 0 ] && [ -n "$dir" ]; then
    for log in "$dir"/*.log; do
      [ -s "$log" ] && { echo "--- last lines of ${log##*/}"; tail -n 15 "$log"; } >&2
    done
  fi
  # The broker first: its controlled shutdown needs the controller.
  [ -z "$broker" ] || stop "$broker"
  [ -z "$controller" ] || stop "$controller"
  [ -z "$dir" ] || rm -rf "$dir"
  exit "$code"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

listens() { (exec 3<> "/dev/tcp/127.0.0.1/$1") 2> /dev/null; }

# Below the ports that the system gives to clients, so that none of them takes it meanwhile.
free_port() {
  local port
  while port=$((20000 + RANDOM % 12000)); listens "$port"; do :; done
  echo "$port"
}

# until_true WHAT PID CONDITION...: PID is the process that must make it true.
until_true() {
  local what=$1 pid=$2 end=$((SECONDS + limit_seconds))
  shift 2
  until "$@"; do
    kill -0 "$pid" 2> /dev/null || fail "$what: its process ended."
    [ "$SECONDS" -lt "$end" ] || fail "$what: not within $limit_seconds s."
    sleep 0.1
  done
}

# java_main LOGGING HEAP_MB CLASS ARGUMENTS...
java_main() {
  java "-Xmx${2}m" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
    "-Dlog4j2.configurationFile=$root/compat/java/conf/log4j2-$1.properties" \
    -cp "$jars/*" "${@:3}"
}

# start LOG COMMAND...: in the background and in a process group of its own, so that Ctrl-C here
# reaches it by clean_up, in its turn. $! is its process.
start() {
  set -m
  "${@:2}" > "$dir/$1" 2>&1 &
  set +m
}

# What the storage tools say, without the records they list.
brief() { grep -v '^Bootstrap metadata: ' || true; }

# tool SCRIPT CLASS ARGUMENTS...: what Kafka's script of that name runs, shown as it is typed.
tool() {
  printf '\n$ %s.sh %s\n' "$1" "${*:3}"
  java_main tools 128 "${@:2}"
}

[ -x "$kraftd" ] || fail "$kraftd is not built: \`make demo\` builds it and runs this."
echo "Kafka $release: fetched through Maven, once."
"$root/compat/jars.sh" "$release"
dir=$(mktemp -d "${TMPDIR:-/tmp}/kraftd-demo.XXXXXX")
controller_port=$(free_port)
broker_port=$(free_port)
while [ "$broker_port" = "$controller_port" ]; do broker_port=$(free_port); done
controllers=localhost:$controller_port
brokers=localhost:$broker_port

cat > "$dir/controller.properties" <<END
process.roles=controller
node.id=1
controller.listener.names=CONTROLLER
listeners=CONTROLLER://$controllers
controller.quorum.bootstrap.servers=$controllers
log.dirs=$dir/controller
END
cat > "$dir/broker.properties" <<END
process.roles=broker
node.id=2
listeners=PLAINTEXT://$brokers
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=$controllers
log.dirs=$dir/broker
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
END

echo
echo "kraftd formats its directory and starts as the only controller (node 1) ..."
cluster=$("$kraftd" random-uuid)
"$kraftd" format -c "$dir/controller.properties" -t "$cluster" --standalone | brief
start kraftd.log "$kraftd" "$dir/controller.properties"
controller=$!
until_true "kraftd listens" "$controller" listens "$controller_port"
echo "kraftd listens on $controllers."

echo
echo "A Kafka $release broker (node 2) joins it ..."
java_main tools 128 kafka.tools.StorageTool format -c "$dir/broker.properties" -t "$cluster" | brief
start broker.log java_main server 384 kafka.Kafka "$dir/broker.properties"
broker=$!
until_true "the broker starts" "$broker" grep -q 'Kafka Server started' "$dir/broker.log"
echo "The broker is registered, unfenced and listens on $brokers."

tool kafka-topics org.apache.kafka.tools.TopicCommand --bootstrap-server "$brokers" \
  --create --topic greetings --partitions 3

echo
echo "Ten records go in ..."
for i in {1..10}; do echo "greeting $i"; done \
  | tool kafka-console-producer org.apache.kafka.tools.ConsoleProducer \
    --bootstrap-server "$brokers" --topic greetings

echo
echo "... and come out:"
tool kafka-console-consumer org.apache.kafka.tools.consumer.ConsoleConsumer \
  --bootstrap-server "$brokers" --topic greetings --from-beginning --max-messages 10 \
  --timeout-ms 60000 | tee "$dir/consumed"
consumed=$(grep -c '^greeting ' "$dir/consumed") || true
[ "$consumed" = 10 ] || fail "$consumed records came out, 10 went in."

tool kafka-topics org.apache.kafka.tools.TopicCommand --bootstrap-server "$brokers" \
  --describe --topic greetings
tool kafka-metadata-quorum org.apache.kafka.tools.MetadataQuorumCommand \
  --bootstrap-controller "$controllers" describe --status
tool kafka-metadata-quorum org.apache.kafka.tools.MetadataQuorumCommand \
  --bootstrap-server "$brokers" describe --replication

resident=$(awk '/^VmRSS:/ { printf "%.1f", $2 / 1024 }' "/proc/$controller/status")
echo
echo "kraftd used $resident MB of memory. Both servers stop and the directory goes ..."
stop "$broker"
broker=''
kill "$controller"
code=0
wait "$controller" || code=$?
controller=''
[ "$code" = 0 ] || fail "kraftd stopped with exit code $code."
echo "Done: a topic, ten records and a quorum, with no Java controller."
