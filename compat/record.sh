#!/usr/bin/env bash
# Re-records everything under fixtures/ from real Kafka processes and rewrites the manifest.
#   compat/record.sh             all of it
#   compat/record.sh storage     only the transcripts of the storage tool
#   compat/record.sh answers     only the answers to tables of requests
#   compat/record.sh quotas      only the traces of the controller mutation quota
#   compat/record.sh directories only the directories of formatted/ and lived/
#   compat/record.sh full        only the directories of full/
#   compat/record.sh batches     only the batches of each codec
#   compat/record.sh traffic     only what brokers and voters say to controllers (25 minutes)
#   compat/record.sh quorum      of that only the voters that change (1 minute)
#   compat/record.sh records     only what Java says of records
#   compat/record.sh config      only what Java says of configurations
#   compat/record.sh levels      only what Java answers and writes at each metadata.version
#   compat/record.sh authorizer  only what Java's authorizer decides
#   compat/record.sh manifest    only the manifest
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-all}
jars=compat/java/jars
classes=compat/java/target/classes

releases="3.9.2 4.0.2 4.1.2 4.2.1 4.3.1 4.4.0"

compat/jars.sh $releases
compat/classes.sh

if [ "$what" = all ] || [ "$what" = storage ]; then
  java -Xmx128m -cp "$classes" kraftd.compat.StorageToolRecorder "$PWD/$jars/4.4.0" \
    "$PWD/compat/java/conf/log4j2-tools.properties" fixtures/4.4.0/storage-tool/*.txt
fi

if [ "$what" = all ] || [ "$what" = answers ]; then
  java -Xmx256m -cp "$classes:$jars/4.4.0/*" kraftd.compat.AnswerRecorder "$PWD/$jars/4.4.0" \
    "$PWD/compat/java/conf" fixtures/4.4.0/answers/*.tsv
fi

if [ "$what" = all ] || [ "$what" = quotas ]; then
  java -Xmx128m -cp "$classes:$jars/4.4.0/*" kraftd.compat.QuotaRecorder fixtures/4.4.0/quotas
fi

if [ "$what" = all ] || [ "$what" = directories ]; then
  for version in $releases; do
    java -Xmx256m -cp "$classes:$jars/$version/*" kraftd.compat.DirectoryRecorder \
      "$PWD/$jars/$version" "$PWD/compat/java/conf" "fixtures/$version"
  done
fi

if [ "$what" = all ] || [ "$what" = full ]; then
  for version in $releases; do
    java -Xmx128m -cp "$classes:$jars/$version/*" kraftd.compat.FullRecorder \
      "$PWD/$jars/$version" "$PWD/compat/java/conf" "fixtures/$version"
  done
fi

if [ "$what" = all ] || [ "$what" = batches ]; then
  java -Xmx128m -cp "$classes:$jars/4.4.0/*" kraftd.compat.BatchRecorder fixtures/4.4.0/batches
fi

if [ "$what" = all ] || [ "$what" = traffic ]; then
  for version in $releases; do
    java -Xmx160m -cp "$classes:$jars/$version/*" kraftd.compat.TrafficRecorder \
      "$PWD/$jars/$version" "$PWD/compat/java/conf" "fixtures/$version/traffic" broker,voter
  done
fi

if [ "$what" = all ] || [ "$what" = traffic ] || [ "$what" = quorum ]; then
  java -Xmx160m -cp "$classes:$jars/4.4.0/*" kraftd.compat.TrafficRecorder \
    "$PWD/$jars/4.4.0" "$PWD/compat/java/conf" fixtures/4.4.0/traffic quorum
fi

if [ "$what" = all ] || [ "$what" = records ]; then
  java -Xmx128m -cp "$classes:$jars/4.4.0/*" kraftd.compat.RecordRecorder fixtures/4.4.0/records
fi

if [ "$what" = all ] || [ "$what" = config ]; then
  KRAFTD_RECORD=env.example java -Xmx256m -cp "$classes:$jars/4.4.0/*" \
    kraftd.compat.ConfigRecorder fixtures/4.4.0/config 2> /dev/null
fi

if [ "$what" = all ] || [ "$what" = levels ]; then
  java -Xmx256m "-Dlog4j2.configurationFile=$PWD/compat/java/conf/log4j2-tools.properties" \
    -cp "$classes:$jars/4.4.0/*" kraftd.compat.LevelRecorder fixtures/4.4.0/levels/outcomes.tsv \
    600000
  java -Xmx256m "-Dlog4j2.configurationFile=$PWD/compat/java/conf/log4j2-tools.properties" \
    -cp "$classes:$jars/4.4.0/*" kraftd.compat.LevelRecorder fixtures/4.4.0/levels/sessions.tsv \
    2000 7 22 25 33
  java -Xmx256m "-Dlog4j2.configurationFile=$PWD/compat/java/conf/log4j2-tools.properties" \
    -cp "$classes:$jars/4.4.0/*" kraftd.compat.LevelRecorder fixtures/4.4.0/levels/downgrade.tsv \
    "600000;leader.imbalance.check.interval.seconds=1" 26 33
fi

if [ "$what" = all ] || [ "$what" = authorizer ]; then
  java -Xmx128m "-Dlog4j2.configurationFile=$PWD/compat/java/conf/log4j2-tools.properties" \
    -cp "$classes:$jars/4.4.0/*" kraftd.compat.AuthorizerRecorder \
    fixtures/4.4.0/authorizer/decisions.tsv
fi

# The manifest: one line a file, with what wrote it. Files under fixtures/config are our own.
made_by() {
  case $1 in
    */storage-tool/*) echo "kafka.tools.StorageTool with the arguments in the file" ;;
    */formatted/*) echo "kafka.tools.StorageTool format, by kraftd.compat.DirectoryRecorder" ;;
    */lived/*) echo "kafka.Kafka as the controller, by kraftd.compat.DirectoryRecorder" ;;
    */full/*) echo "kafka.Kafka as the controller, by kraftd.compat.FullRecorder" ;;
    */answers/*) echo "a controller formatted --standalone with one broker, asked by kraftd.compat.AnswerRecorder" ;;
    */authorizer/*) echo "StandardAuthorizer and CidrUtils, asked by kraftd.compat.AuthorizerRecorder" ;;
    */levels/*) echo "controllers formatted at each metadata.version, asked by kraftd.compat.LevelRecorder" ;;
    */batches/*) echo "org.apache.kafka.common.record.internal.MemoryRecords, by kraftd.compat.BatchRecorder" ;;
    */traffic/*) echo "kafka.Kafka as controllers and brokers, through kraftd.compat.TrafficRecorder" ;;
    */records/image.tsv) echo "kraftd's own list, given to kraftd.compat.RecordRecorder" ;;
    */quotas/*) echo "ControllerMutationQuotaManager, asked by kraftd.compat.QuotaRecorder" ;;
    */records/*) echo "MetadataRecordSerde and MetadataImage, asked by kraftd.compat.RecordRecorder" ;;
    */config/*) echo "kafka.server.KafkaConfig, asked by kraftd.compat.ConfigRecorder" ;;
    *) echo "compat/record.sh" ;;
  esac
}
{
  printf 'file\tkafka\tmade by\tsha256\n'
  find fixtures -type f -path 'fixtures/[0-9]*' | LC_ALL=C sort | while read -r file; do
    version=${file#fixtures/}
    printf '%s\t%s\t%s\t%s\n' "${file#fixtures/}" "${version%%/*}" "$(made_by "$file")" \
      "$(sha256sum "$file" | cut -d' ' -f1)"
  done
} > fixtures/MANIFEST.tsv
