//! Requests about loggers as whole frames: against the recorded answers of a Java controller, and
//! beside what only the core can answer.

use std::fmt::Debug;

use kafka_protocol::messages as m;
use kafka_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use kafka_protocol::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::protocol::Decodable;

use super::core::{Answer, Request};
use super::dispatch::tests::{encoded, frame, harness, later, recorded, recorded_image};
use crate::controller::Reply;
use crate::types::loggers::{Level, Loggers};
use crate::types::{ApiError, ErrorCode};

const ALTER: i16 = 44;
const DESCRIBE: i16 = 32;
const ACTIVE: &str = "org.apache.kafka.controller.QuorumController";
const REPLICATION: &str = "org.apache.kafka.controller.ReplicationControlManager";

/// Answered otherwise on purpose; compat/FINDINGS.md has the reasons.
const OTHERWISE: [&str; 9] = [
    "DescribeConfigs: all loggers",
    "IncrementalAlterConfigs: a logger set without a value",
    "IncrementalAlterConfigs: set an unknown logger",
    "IncrementalAlterConfigs: set an unknown logger to an unknown level",
    "IncrementalAlterConfigs: set a logger of no name",
    "IncrementalAlterConfigs: set ROOT",
    "IncrementalAlterConfigs: delete ROOT",
    "IncrementalAlterConfigs: delete an unknown logger",
    "IncrementalAlterConfigs: a good and a bad one",
];

/// The body of an answer to a request with the correlation id 77, items in an order of their own.
fn body<M: Decodable>(answer: &bytes::Bytes, version: i16, flexible: bool) -> M {
    assert_eq!(answer[4..8], 77_i32.to_be_bytes());
    M::decode(&mut answer.slice(8 + usize::from(flexible)..), version).unwrap()
}

fn sorted<T: Debug>(items: &[T]) -> Vec<String> {
    let mut shown: Vec<String> = items.iter().map(|item| format!("{item:?}")).collect();
    shown.sort();
    shown
}

fn described(mut answer: m::DescribeConfigsResponse) -> Vec<String> {
    for result in &mut answer.results {
        // A hash map's order.
        result
            .configs
            .sort_by(|a, b| a.name.as_str().cmp(b.name.as_str()));
    }
    sorted(&answer.results)
}

fn resource(kind: i8, name: &str, configs: &[(&str, &str)]) -> AlterConfigsResource {
    let config = |(logger, level): &(&str, &str)| {
        AlterableConfig::default()
            .with_name((*logger).to_owned().into())
            .with_value(Some((*level).to_owned().into()))
    };
    AlterConfigsResource::default()
        .with_resource_type(kind)
        .with_resource_name(name.to_owned().into())
        .with_configs(configs.iter().map(config).collect())
}

fn alter(resources: Vec<AlterConfigsResource>) -> m::IncrementalAlterConfigsRequest {
    m::IncrementalAlterConfigsRequest::default().with_resources(resources)
}

fn answered(kind: i8, name: &str) -> AlterConfigsResourceResponse {
    AlterConfigsResourceResponse::default()
        .with_error_message(None)
        .with_resource_type(kind)
        .with_resource_name(name.to_owned().into())
}

/// Java has a level for each class, and kraftd for each of its rooms: the recorded classes are of
/// different rooms.
#[tokio::test]
async fn loggers_are_shown_and_changed_as_javas_controller_does() {
    let mut at = harness(recorded_image());
    let (mut shown, mut changed) = (0, 0);
    for row in recorded("loggers.tsv") {
        if row.key != ALTER && row.key != DESCRIBE {
            continue;
        }
        let started = at.start(frame(row.key, row.version, 77, &row.request));
        if !at.core.asked.lock().unwrap().is_empty() {
            // What comes with others is below; its loggers are changed all the same.
            at.core.asked.lock().unwrap().clear();
            continue;
        }
        let ours = later(started).await;
        let java = &mut &row.answer[..];
        let otherwise = OTHERWISE.contains(&row.case.as_str());
        if row.key == ALTER {
            let flexible = row.version >= 1;
            let ours: m::IncrementalAlterConfigsResponse = body(&ours, row.version, flexible);
            let java = m::IncrementalAlterConfigsResponse::decode(java, row.version).unwrap();
            let (ours, java) = (sorted(&ours.responses), sorted(&java.responses));
            assert_eq!(
                ours == java,
                !otherwise,
                "{}: {ours:#?} {java:#?}",
                row.case
            );
            changed += 1;
        } else {
            let ours = described(body(&ours, row.version, row.version >= 4));
            let java = m::DescribeConfigsResponse::decode(java, row.version).unwrap();
            let java = described(java);
            assert_eq!(
                ours == java,
                !otherwise,
                "{}: {ours:#?} {java:#?}",
                row.case
            );
            shown += 1;
        }
    }
    assert!(shown > 30 && changed > 50, "{shown} {changed}");
}

/// What Java's controller lists and kraftd does not have: nothing here does the same.
const WITHOUT_COUNTERPART: [&str; 52] = [
    "LogFutureTimestampLogger",
    "com.yammer.metrics.reporting.JmxReporter",
    "kafka.network.RequestChannel$",
    "kafka.request.logger",
    "kafka.server.ConfigAdminManager",
    "org.apache.kafka.clients.CommonClientConfigs",
    "org.apache.kafka.common.config.AbstractConfig",
    "org.apache.kafka.common.config.ConfigDef",
    "org.apache.kafka.common.metrics.JmxReporter",
    "org.apache.kafka.common.metrics.Metrics",
    "org.apache.kafka.common.network.ChannelBuilders",
    "org.apache.kafka.common.protocol.Errors",
    "org.apache.kafka.common.record.internal.ControlRecordType",
    "org.apache.kafka.common.record.internal.MultiRecordsSend",
    "org.apache.kafka.common.requests.FetchMetadata",
    "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
    "org.apache.kafka.common.utils.Utils",
    "org.apache.kafka.common.utils.internals.AppInfoParser",
    "org.apache.kafka.common.utils.internals.KafkaThread",
    "org.apache.kafka.common.utils.internals.LoggingSignalHandler",
    "org.apache.kafka.coordinator.group.GroupConfig",
    "org.apache.kafka.coordinator.group.GroupCoordinatorConfig",
    "org.apache.kafka.coordinator.group.assignor.SimpleAssignor",
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor",
    "org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor",
    "org.apache.kafka.metadata.KRaftMetadataCache",
    "org.apache.kafka.metadata.ListenerInfo",
    "org.apache.kafka.metadata.publisher.AclPublisher",
    "org.apache.kafka.metadata.publisher.FeaturesPublisher",
    "org.apache.kafka.network.Request",
    "org.apache.kafka.raft.TimingWheelExpirationService$ExpiredOperationReaper",
    "org.apache.kafka.raft.internals.RecordsIterator",
    "org.apache.kafka.server.BrokerFeatures",
    "org.apache.kafka.server.config.ConfigSynonym",
    "org.apache.kafka.server.fault.LoggingFaultHandler",
    "org.apache.kafka.server.fault.ProcessTerminatingFaultHandler",
    "org.apache.kafka.server.logger.Log4jControllerRegistration",
    "org.apache.kafka.server.logger.LoggingController",
    "org.apache.kafka.server.metrics.LinuxIoMetricsCollector",
    "org.apache.kafka.server.network.EndpointReadyFutures",
    "org.apache.kafka.server.purgatory.DelayedOperationPurgatory",
    "org.apache.kafka.server.purgatory.DelayedOperationPurgatory$ExpiredOperationReaper",
    "org.apache.kafka.server.quota.ClientQuotaManager",
    "org.apache.kafka.server.quota.ClientQuotaManager$ThrottledChannelReaper",
    "org.apache.kafka.server.quota.ControllerMutationQuotaManager",
    "org.apache.kafka.server.quota.ReplicationQuotaManager",
    "org.apache.kafka.server.util.KafkaScheduler",
    "org.apache.kafka.storage.internals.log.LogCleaner",
    "org.apache.kafka.storage.internals.log.LogDirFailureChannel",
    "org.apache.kafka.storage.internals.log.ProducerStateManager",
    "org.apache.kafka.storage.log.metrics.BrokerTopicStats",
    "state.change.logger",
];

/// A runbook's names: the tool refuses what is not listed without asking.
#[test]
fn every_logger_that_javas_controller_lists_is_known_or_has_no_counterpart() {
    let rows = recorded("loggers.tsv");
    let all = rows
        .iter()
        .find(|row| row.case == "DescribeConfigs: all loggers")
        .expect("the list was recorded");
    let java = m::DescribeConfigsResponse::decode(&mut &all.answer[..], all.version).unwrap();
    let java: Vec<&str> = java.results[0]
        .configs
        .iter()
        .map(|c| c.name.as_str())
        .collect();
    assert!(java.len() > 100, "{java:?}");
    let loggers = Loggers::default();
    for name in &java {
        let without = WITHOUT_COUNTERPART.contains(name);
        assert_eq!(loggers.has(name), !without, "{name}");
    }
}

/// Loggers belong to the process that is asked, leader or not: the core is not asked about them.
#[tokio::test]
async fn loggers_among_others_are_taken_out_and_answered_at_the_end() {
    let mut at = harness(recorded_image());
    let request = alter(vec![
        resource(8, "1", &[("root", "WARN")]),
        resource(4, "", &[("log.cleaner.threads", "2")]),
        resource(8, "2", &[("root", "WARN")]),
    ]);
    let started = at.start(frame(ALTER, 1, 77, &encoded(&request, 1)));
    let (Request::Controller { request, .. }, reply) = at.asked() else {
        panic!("for the controller");
    };
    let crate::controller::Request::IncrementalAlterConfigs(rest) = request else {
        panic!("the same request");
    };
    assert_eq!(rest.resources.len(), 1);
    assert_eq!(rest.resources[0].resource_type, 4);
    let told = m::IncrementalAlterConfigsResponse::default().with_responses(vec![answered(4, "")]);
    let answer = Answer::Controller(Ok(Reply::IncrementalAlterConfigs(told)));
    reply.send(answer).unwrap();
    let answer: m::IncrementalAlterConfigsResponse = body(&later(started).await, 1, true);
    let other = "Unexpected node id. Expected 1, but received 2";
    let expected = [
        answered(4, ""),
        answered(8, "1"),
        answered(8, "2")
            .with_error_code(ErrorCode::InvalidRequest.code())
            .with_error_message(Some(other.into())),
    ];
    assert_eq!(answer.responses, expected);
    assert_eq!(at.dispatch.levels.now().root(), Level::Warn);
}

/// As in Java: the request is refused as a whole, with its loggers changed already.
#[tokio::test]
async fn loggers_are_changed_although_the_rest_of_the_request_is_refused() {
    let mut at = harness(recorded_image());
    let request = alter(vec![
        resource(8, "1", &[("root", "ERROR")]),
        resource(4, "", &[("log.cleaner.threads", "2")]),
    ]);
    let started = at.start(frame(ALTER, 1, 77, &encoded(&request, 1)));
    let (_, reply) = at.asked();
    let refused: ApiError = ErrorCode::NotController.into();
    reply.send(Answer::Controller(Err(refused))).unwrap();
    let answer: m::IncrementalAlterConfigsResponse = body(&later(started).await, 1, true);
    let codes: Vec<i16> = answer.responses.iter().map(|one| one.error_code).collect();
    assert_eq!(codes, [ErrorCode::NotController.code(); 2]);
    assert_eq!(at.dispatch.levels.now().root(), Level::Error);
}

#[tokio::test]
async fn a_request_with_too_many_loggers_changes_none_and_is_refused() {
    let mut at = harness(recorded_image());
    let many = vec![(ACTIVE, "DEBUG"); 10_001];
    let request = alter(vec![
        resource(8, "1", &[(REPLICATION, "DEBUG")]),
        resource(8, "1", &many),
    ]);
    let started = at.start(frame(ALTER, 1, 77, &encoded(&request, 1)));
    let answer: m::IncrementalAlterConfigsResponse = body(&later(started).await, 1, true);
    let codes: Vec<i16> = answer.responses.iter().map(|one| one.error_code).collect();
    assert_eq!(codes, [ErrorCode::PolicyViolation.code(); 2]);
    assert_eq!(at.dispatch.levels.now(), Loggers::default());
}
