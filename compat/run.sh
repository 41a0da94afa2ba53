#!/usr/bin/env bash
# Starts one controller in the foreground on ./data, formats that first if it is new, and says how
# to attach a broker. Ctrl-C stops it.
#   DATA=dir          another directory
#   PORT=9093         the controller's port, BROKER_PORT=9092 the broker's: of a new directory only,
#                     they are kept in its server.properties
#   KRAFTD=program    another binary
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
kraftd=${KRAFTD:-${CARGO_TARGET_DIR:-$root/target}/debug/kraftd}
data=${DATA:-$root/data}
[ -x "$kraftd" ] || { echo "$kraftd is not built: \`make run\` builds it and starts it." >&2; exit 1; }
mkdir -p "$data"
data=$(cd "$data" && pwd)
config=$data/server.properties

if [ ! -e "$config" ]; then
  port=${PORT:-9093}
  # The configuration appears whole or not at all, so that a run that is cut short can be repeated.
  cat > "$config.part" <<END
# A single controller on this machine, without encryption. Written once; change it as you like.
process.roles=controller
node.id=1
controller.listener.names=CONTROLLER
listeners=CONTROLLER://localhost:$port
controller.quorum.bootstrap.servers=localhost:$port
log.dirs=$data/controller
END
  cat > "$data/broker.properties" <<END
# A Kafka broker for that controller.
process.roles=broker
node.id=2
listeners=PLAINTEXT://localhost:${BROKER_PORT:-9092}
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=localhost:$port
log.dirs=$data/broker
# One broker can hold one copy of everything.
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
END
  mv "$config.part" "$config"
elif [ -n "${PORT:-}${BROKER_PORT:-}" ]; then
  echo "PORT and BROKER_PORT are of a new directory; $data has its ports in server.properties" \
    "and broker.properties: change them there, or name another directory by DATA." >&2
  exit 1
fi

if [ ! -e "$data/controller/meta.properties" ]; then
  "$kraftd" format -c "$config" -t "$("$kraftd" random-uuid)" --standalone
fi
cluster=$(sed -n 's/^cluster.id=//p' "$data/controller/meta.properties")
broker=$(sed -n 's|^listeners=PLAINTEXT://||p' "$data/broker.properties")

cat <<END

Starting the controller of $config; Ctrl-C stops it.
To attach a broker, in the directory of a Kafka release (3.9 to 4.4), in another terminal:

  bin/kafka-storage.sh format --ignore-formatted -t $cluster -c $data/broker.properties
  bin/kafka-server-start.sh $data/broker.properties
  bin/kafka-topics.sh --bootstrap-server $broker --create --topic first

Or see all of it at once: make demo

END
exec "$kraftd" "$config"
