#!/bin/sh
# Creates the topics of the job: topics.sh BOOTSTRAP. Existing topics stay as they are.
set -eu

bootstrap=$1

topic() {
  name=$1; shift
  /opt/kafka/bin/kafka-topics.sh --bootstrap-server "$bootstrap" --create --if-not-exists --topic "$name" "$@"
}

topic events --partitions 8
topic tokens --partitions 4
# A job without state reads it from its beginning: it is never cut off by age.
topic instructions --partitions 1 --config retention.ms=-1
topic summaries --partitions 1
topic sums --partitions 1
topic dead-letters --partitions 1
