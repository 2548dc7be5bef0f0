#!/bin/sh
# Grants what docs/rights.md lists. Made from streaming/kafka/required_rights.py by 'make docs'.
# Usage: kafka-acls.sh mirror|watched --bootstrap-server HOST:PORT [--command-config FILE]
#   mirror   the cluster that keeps the monitor's topics
#   watched  the cluster whose consumer groups are watched
# The users' names and Kafka's script are taken from these variables:
set -eu
: "${KAFKA_ACLS:=kafka-acls.sh}"
: "${MONITOR:=rebalance-monitor}"
: "${NOTIFY:=rebalance-notify}"
: "${TAP:=rebalance-tap}"
: "${RECORD:=rebalance-record}"
: "${VERIFY:=rebalance-verify}"
: "${VIEW:=rebalance-view}"

allow() {
  user=$1
  shift
  "$KAFKA_ACLS" --add --allow-principal "User:$user" "$@"
}

cluster=${1:?"name the cluster: mirror or watched"}
shift
case "$cluster" in
mirror)
  allow "$MONITOR" --operation Read --topic rebalance-mirror --topic rebalance-findings --topic rebalance-groups --topic rebalance-status "$@"
  allow "$MONITOR" --operation Write --topic rebalance-findings --topic rebalance-groups --topic rebalance-events --topic rebalance-status --topic rebalance-dead-letters --topic rebalance-quality "$@"
  allow "$MONITOR" --operation Create --topic rebalance-findings --topic rebalance-groups --topic rebalance-events --topic rebalance-status --topic rebalance-dead-letters --topic rebalance-quality "$@"
  allow "$MONITOR" --operation Read --topic rebalance-lag "$@"
  allow "$MONITOR" --operation Write --topic rebalance-lag "$@"
  allow "$MONITOR" --operation Create --topic rebalance-lag "$@"
  allow "$MONITOR" --operation Create --topic rebalance-mirror --topic rebalance-notifications "$@"
  allow "$MONITOR" --operation Read --topic rebalance-notifications "$@"
  allow "$NOTIFY" --operation Read --topic rebalance-findings --topic rebalance-status --topic rebalance-notifications "$@"
  allow "$NOTIFY" --operation Read --topic rebalance-events "$@"
  allow "$NOTIFY" --operation Read --topic rebalance-groups --topic rebalance-events "$@"
  allow "$NOTIFY" --operation Write --topic rebalance-notifications "$@"
  allow "$NOTIFY" --operation Create --topic rebalance-findings --topic rebalance-status --topic rebalance-notifications "$@"
  allow "$TAP" --operation Write --topic rebalance-mirror "$@"
  allow "$TAP" --operation Create --topic rebalance-mirror "$@"
  allow "$RECORD" --operation Read --topic rebalance-mirror "$@"
  allow "$VERIFY" --operation Read --topic rebalance-groups "$@"
  allow "$VIEW" --operation Read --topic rebalance-groups --topic rebalance-findings --topic rebalance-status "$@"
  allow "$VIEW" --operation Read --topic rebalance-events "$@"
  allow "$VIEW" --operation Read --topic rebalance-lag "$@"
  allow "$VIEW" --operation Read --topic rebalance-mirror "$@"
  ;;
watched)
  allow "$MONITOR" --operation Describe --group '*' --topic '*' "$@"
  allow "$VERIFY" --operation Describe --group '*' --topic '*' "$@"
  ;;
*)
  echo "error: name the cluster: mirror or watched" >&2
  exit 2
  ;;
esac
