//! kraft.version by UpdateFeatures: the quorum writes it, the controller's record lets the reply
//! go (KIP-853).

use kafka_protocol::messages::UpdateFeaturesRequest;
use kafka_protocol::messages::update_features_request::FeatureUpdateKey;

use super::*;

impl Bench {
    fn upgrade(&mut self, validate_only: bool) -> Ticket {
        let update = FeatureUpdateKey::default()
            .with_feature(StrBytes::from_static_str("kraft.version"))
            .with_max_version_level(1)
            .with_upgrade_type(1);
        let request = UpdateFeaturesRequest::default()
            .with_feature_updates(vec![update])
            .with_validate_only(validate_only);
        self.ask(2, Asked::UpdateFeatures(request))
    }

    fn told(&self, ticket: Ticket) -> (i16, String) {
        let Ok(Reply::UpdateFeatures(reply)) = self.reply(ticket) else {
            panic!("another reply");
        };
        let text = reply.error_message.as_ref();
        (
            reply.error_code,
            text.map(ToString::to_string).unwrap_or_default(),
        )
    }
}

fn bench() -> Bench {
    let mut bench = Bench::active();
    let features = &mut bench.node.settings.supported_features;
    features.insert("kraft.version".into(), (0, 1));
    bench
}

#[test]
fn kraft_version_rises_in_a_batch_of_the_quorum_and_the_reply_waits_for_the_commit() {
    let mut bench = bench();
    let before = bench.node.raft().log_end();
    let ticket = bench.upgrade(true);
    assert_eq!(bench.told(ticket), (0, String::new()));
    assert_eq!(bench.node.raft().log_end(), before, "only asked whether");

    let ticket = bench.upgrade(false);
    assert!(!bench.replies.contains_key(&ticket));
    // kraft.version and voters of the quorum, and behind them one record of the controller.
    assert_eq!(bench.node.raft().log_end(), before.plus(2));
    bench.settle();
    assert_eq!(bench.node.raft().log_end(), before.plus(3));
    assert_eq!(bench.told(ticket), (0, String::new()));
    assert_eq!(bench.published.kraft_version, 1);
    let raft = bench.node.raft();
    assert_eq!(raft.voters()[0].key.directory, Uuid::from_u128(7));
    assert_eq!(raft.kraft_version_at(before), 0);

    // Snapshots hold it from now on.
    bench.step(Event::SnapshotAsked);
    bench.settle();
    let order = bench.snapshots.last().unwrap();
    assert!(order.id.offset > before);
    assert_eq!(order.control.len(), 2);

    let end = bench.node.raft().log_end();
    let ticket = bench.upgrade(false);
    bench.settle();
    assert_eq!(bench.told(ticket), (0, String::new()), "it has it already");
    assert_eq!(bench.node.raft().log_end(), end.next());
}

#[test]
fn an_upgrade_that_the_quorum_refuses_writes_nothing() {
    let mut bench = bench();
    let features = &mut bench.node.settings.supported_features;
    features.insert("kraft.version".into(), (0, 2));
    let before = bench.node.raft().log_end();
    let update = FeatureUpdateKey::default()
        .with_feature(StrBytes::from_static_str("kraft.version"))
        .with_max_version_level(2)
        .with_upgrade_type(1);
    let request = UpdateFeaturesRequest::default().with_feature_updates(vec![update]);
    let ticket = bench.ask(2, Asked::UpdateFeatures(request));
    bench.settle();
    let text = "The update failed for all features since the following feature had an error: \
                Invalid upgrade of kraft.version to KRAFT_VERSION_2 because not all of the voters \
                support it";
    assert_eq!(bench.told(ticket), (95, text.to_owned()));
    assert_eq!(bench.node.raft().log_end(), before);
}
