//! UpdateFeatures (KIP-584, KIP-778, KIP-1022): finalized levels go up or down, all or none.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use kafka_protocol::messages::update_features_request::FeatureUpdateKey;
use kafka_protocol::messages::update_features_response::UpdatableFeatureResult;
use kafka_protocol::messages::{UpdateFeaturesRequest, UpdateFeaturesResponse};
use kafka_protocol::protocol::StrBytes;

use super::configs::topic;
use super::levels::metadata_version;
use super::{Decision, KraftUpgrade, Reply, View, bounded_items};
use crate::image::{ConfigResource, FeatureRange, configs};
use crate::records::{ConfigRecord, FeatureLevelRecord, NoOpRecord, Record, VersionedRecord};
use crate::types::features::{
    ELR_VERSION, Feature, KRAFT_VERSION, METADATA_VERSION, MetadataVersion,
};
use crate::types::java_order::{sort_as_hashed, string_hash};
use crate::types::{ApiError, ErrorCode, NodeId};

/// A level may rise.
const UPGRADE: i8 = 1;
/// A level may fall if no metadata is lost by it.
const SAFE_DOWNGRADE: i8 = 2;
/// A level may fall although metadata is lost. Refused for `metadata.version` in every release.
const UNSAFE_DOWNGRADE: i8 = 3;

/// The last version whose answer has a result for each feature.
const VERSION_OF_RESULTS_MAX: i16 = 1;

/// The rule of UpdateFeatures v0 to v2. In version 0 the flag `AllowDowngrade` means nothing, as in
/// Java: every update is an upgrade.
///
/// # Errors
/// `POLICY_VIOLATION` when the request is too large.
pub(super) fn decide(
    view: &View<'_>,
    version: i16,
    request: &UpdateFeaturesRequest,
) -> Result<Decision, ApiError> {
    bounded_items(request.feature_updates.len())?;
    let named: IndexMap<&str, &FeatureUpdateKey> = request
        .feature_updates
        .iter()
        .map(|update| (update.feature.as_str(), update))
        .collect();
    // Which of several mistakes is told depends on it, and the order of the records.
    let mut updates: Vec<(&str, &FeatureUpdateKey)> = named.into_iter().collect();
    sort_as_hashed(&mut updates, |(name, _)| string_hash(name));
    let updates: IndexMap<&str, &FeatureUpdateKey> = updates.into_iter().collect();
    let mut response = UpdateFeaturesResponse::default();
    let mut records = match update_all(view, &updates) {
        Ok(records) => records,
        Err(reason) => return Ok(Decision::only(refused(&reason))),
    };
    if version <= VERSION_OF_RESULTS_MAX {
        let done = |update: &FeatureUpdateKey| {
            UpdatableFeatureResult::default()
                .with_feature(update.feature.clone())
                .with_error_message(Some(StrBytes::from_static_str("NONE")))
        };
        response.results = request.feature_updates.iter().map(done).collect();
    }
    response.error_message = None;
    if request.validate_only {
        records.clear();
    }
    // What is no upgrade was refused, or is the level that it has.
    let upgrade = updates
        .get(KRAFT_VERSION)
        .and_then(|update| u16::try_from(update.max_version_level).ok())
        .filter(|level| i32::from(*level) > i32::from(view.kraft_version));
    let mut decision = Decision::atomic(records, Reply::UpdateFeatures(response));
    decision.kraft_version = upgrade.map(|level| KraftUpgrade {
        level,
        validate_only: request.validate_only,
    });
    Ok(decision)
}

/// The reply to updates of which one is refused, and so none made.
#[must_use]
pub fn refused(reason: &str) -> Reply {
    let message = format!(
        "The update failed for all features since the following feature had an error: {reason}"
    );
    let response = UpdateFeaturesResponse::default()
        .with_error_code(ErrorCode::InvalidUpdateVersion.code())
        .with_error_message(Some(StrBytes::from_string(message)));
    Reply::UpdateFeatures(response)
}

fn update_all(
    view: &View<'_>,
    updates: &IndexMap<&str, &FeatureUpdateKey>,
) -> Result<Vec<VersionedRecord>, String> {
    // What the levels would be: a feature may depend on another of the same request.
    let mut proposed: BTreeMap<&str, i16> = view.image.features().iter().collect();
    proposed.extend(
        updates
            .iter()
            .map(|(name, update)| (*name, update.max_version_level)),
    );
    let mut records = Vec::new();
    // Before the level itself, in the same batch.
    if updates
        .get(ELR_VERSION)
        .is_some_and(|update| update.max_version_level > 0)
    {
        records.extend(min_isr_records(view));
    }
    for (name, update) in updates {
        records.extend(update_one(view, name, update, &proposed)?);
    }
    Ok(records)
}

fn update_one(
    view: &View<'_>,
    name: &str,
    update: &FeatureUpdateKey,
    proposed: &BTreeMap<&str, i16>,
) -> Result<Option<VersionedRecord>, String> {
    let level = update.max_version_level;
    let current = if name == KRAFT_VERSION {
        view.kraft_version
    } else {
        view.image.features().level(name)
    };
    let invalid =
        |reason: String| format!("Invalid update version {level} for feature {name}. {reason}");
    if !(UPGRADE..=UNSAFE_DOWNGRADE).contains(&update.upgrade_type) {
        return Err(invalid(
            "The controller does not support the given upgrade type.".into(),
        ));
    }
    if level < 0 {
        return Err(invalid("A feature version cannot be less than 0.".into()));
    }
    check_support(view, name, level).map_err(invalid)?;
    let upgrade = update.upgrade_type == UPGRADE;
    if level < current && upgrade {
        return Err(invalid(
            "Can't downgrade the version of this feature without setting the upgrade type to \
             either safe or unsafe downgrade."
                .into(),
        ));
    }
    if level > current && !upgrade {
        return Err(invalid("Can't downgrade to a newer version.".into()));
    }
    match name {
        METADATA_VERSION => check_metadata_version(current, level, update.upgrade_type)?,
        KRAFT_VERSION if level < current => {
            return Err(invalid(
                "Can't downgrade the version of this feature.".into(),
            ));
        }
        // The quorum writes the level. The record changes nothing: its commit lets the reply go,
        // also for an upgrade to the level that it has.
        KRAFT_VERSION => {
            return Ok(upgrade.then(|| Record::NoOp(NoOpRecord::default()).at(0)));
        }
        _ => check_dependencies(name, level, proposed).map_err(invalid)?,
    }
    let record = FeatureLevelRecord {
        name: name.to_owned(),
        feature_level: level,
        ..FeatureLevelRecord::default()
    };
    Ok(Some(Record::FeatureLevel(record).at(0)))
}

/// Every node that runs must support the level: this one, all registered brokers and, where
/// controllers register, all of them and every voter.
fn check_support(view: &View<'_>, name: &str, level: i16) -> Result<(), String> {
    let own = view.settings.node_id;
    let local = view.settings.supported_features.get(name).copied();
    supports(local, level, format_args!("Local controller {own}"))?;
    for (id, broker) in view.image.brokers() {
        let range = broker.features.get(name).copied();
        supports(range, level, format_args!("Broker {id}"))?;
    }
    if !metadata_version(view.image).controller_registration() {
        return Ok(());
    }
    for (id, controller) in view.image.controllers() {
        if *id != own {
            let range = controller.features.get(name).copied();
            supports(range, level, format_args!("Controller {id}"))?;
        }
    }
    let known = |id: &&NodeId| **id == own || view.image.controllers().contains_key(*id);
    match view.settings.static_voters.iter().find(|id| !known(id)) {
        Some(id) => Err(format!(
            "controller {id} has not registered, and may not support this feature"
        )),
        None => Ok(()),
    }
}

fn supports(
    range: Option<FeatureRange>,
    level: i16,
    who: std::fmt::Arguments<'_>,
) -> Result<(), String> {
    let (min, max) = range.unwrap_or((0, 0));
    if (min..=max).contains(&level) {
        return Ok(());
    }
    if max == 0 {
        return Err(format!("{who} does not support this feature."));
    }
    Err(format!("{who} only supports versions {min}-{max}"))
}

fn check_metadata_version(current: i16, level: i16, upgrade_type: i8) -> Result<(), String> {
    let changed = MetadataVersion(current).metadata_changed_between(MetadataVersion(level));
    if level >= current || !changed {
        return Ok(());
    }
    let reason = if upgrade_type == SAFE_DOWNGRADE {
        "Refusing to perform the requested downgrade because it might delete metadata information."
    } else {
        "Unsafe metadata downgrade is not supported in this version."
    };
    Err(format!(
        "Unsupported metadata.version downgrade from {current} to {level}. {reason}"
    ))
}

/// A level may need another feature at some level: eligible leader replicas a `metadata.version`
/// that has a place for them in records.
fn check_dependencies(
    name: &str,
    level: i16,
    proposed: &BTreeMap<&str, i16>,
) -> Result<(), String> {
    let feature = Feature::by_name(name).ok_or_else(|| format!("Feature {name} not found."))?;
    feature.validate(level, |other| proposed.get(other).copied())
}

/// Eligible leader replicas need one smallest ISR that all nodes agree on (KIP-966): the cluster's
/// default is written if it has none, and what single brokers say is deleted.
fn min_isr_records(view: &View<'_>) -> Vec<VersionedRecord> {
    const MIN_ISR: &str = "min.insync.replicas";
    let record = |resource_name: String, value| {
        let record = ConfigRecord {
            resource_type: configs::BROKER,
            resource_name,
            name: MIN_ISR.into(),
            value,
            ..ConfigRecord::default()
        };
        Record::Config(record).at(0)
    };
    let cluster = view.image.config(&ConfigResource::all_brokers());
    let mut records = Vec::new();
    if cluster.is_none_or(|map| map.get(MIN_ISR).is_none()) {
        records.push(record(
            String::new(),
            Some(topic::static_min_isr(view.settings)),
        ));
    }
    let own_value = view
        .image
        .configs_of(configs::BROKER)
        .filter(|(name, map)| {
            let own = map.get(MIN_ISR);
            !name.is_empty() && own.is_some()
        });
    records.extend(own_value.map(|(name, _)| record(name.to_owned(), None)));
    records
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::Request;
    use crate::controller::testing::World;
    use crate::records::{ControllerFeature, RegisterControllerRecord};
    use crate::types::NodeId;

    fn request(updates: &[(&'static str, i16, i8)]) -> Request {
        let updates = updates.iter().map(|(name, level, upgrade_type)| {
            FeatureUpdateKey::default()
                .with_feature(StrBytes::from_static_str(name))
                .with_max_version_level(*level)
                .with_upgrade_type(*upgrade_type)
        });
        let request = UpdateFeaturesRequest::default().with_feature_updates(updates.collect());
        Request::UpdateFeatures(request)
    }

    /// The records as JSON, or the sentence.
    fn ask(world: &mut World, updates: &[(&'static str, i16, i8)]) -> Result<Vec<String>, String> {
        let decision = world.ask(2, request(updates)).unwrap();
        let Reply::UpdateFeatures(reply) = decision.reply else {
            unreachable!()
        };
        let records = decision.records.iter();
        match reply.error_message {
            Some(message) => {
                assert_eq!(reply.error_code, 95);
                assert!(decision.records.is_empty());
                Err(message.to_string())
            }
            None => Ok(records
                .map(|it| format!("{} {}", it.record.name(), it.record.json(it.version)))
                .collect()),
        }
    }

    #[test]
    fn eligible_leaders_come_with_one_smallest_isr_for_all() {
        let mut world = World::at_level(25);
        world.broker(2, &[]);
        world
            .settings
            .static_configs
            .insert("min.insync.replicas".into(), " 2 ".into());
        world.config(4, "2", "min.insync.replicas", "3");
        world.config(4, "2", "num.io.threads", "3");
        let config = |name: &str, value: &str| {
            format!(
                "CONFIG_RECORD {{\"resourceType\":4,\"resourceName\":\"{name}\",\
                 \"name\":\"min.insync.replicas\",\"value\":{value}}}"
            )
        };
        let level =
            format!("FEATURE_LEVEL_RECORD {{\"name\":\"{ELR_VERSION}\",\"featureLevel\":1}}");
        let records = ask(&mut world, &[(ELR_VERSION, 1, UPGRADE)]).unwrap();
        assert_eq!(
            records,
            [config("", "\"2\""), config("2", "null"), level.clone()]
        );
        world.config(4, "", "min.insync.replicas", "4");
        let records = ask(&mut world, &[(ELR_VERSION, 1, UPGRADE)]).unwrap();
        assert_eq!(records, [config("2", "null"), level]);
    }

    #[test]
    fn a_feature_may_depend_on_another_of_the_same_request() {
        let mut world = World::at_level(21);
        let refused = ask(&mut world, &[(ELR_VERSION, 1, UPGRADE)]).unwrap_err();
        assert!(
            refused.contains("depends on metadata.version level 23"),
            "{refused}"
        );
        let both = [(METADATA_VERSION, 23, UPGRADE), (ELR_VERSION, 1, UPGRADE)];
        assert_eq!(ask(&mut world, &both).unwrap().len(), 3);
    }

    #[test]
    fn a_downgrade_may_not_cross_a_change_of_records() {
        for (current, level, allowed) in [
            (29, 24, true),
            (29, 23, true),
            (29, 22, false),
            (31, 30, true),
            (30, 29, false),
            (22, 17, true),
            (22, 16, false),
            (10, 8, true),
            (10, 7, false),
        ] {
            let mut world = World::at_level(current);
            let told = ask(&mut world, &[(METADATA_VERSION, level, SAFE_DOWNGRADE)]);
            assert_eq!(told.is_ok(), allowed, "{current} to {level}: {told:?}");
        }
    }

    #[test]
    fn every_registered_node_must_support_the_level() {
        let mut world = World::at_level(21);
        world
            .settings
            .supported_features
            .insert("group.version".into(), (0, 0));
        world.broker(2, &[]);
        world
            .settings
            .supported_features
            .insert("group.version".into(), (0, 1));
        let up = [("group.version", 1, UPGRADE)];
        let refused = ask(&mut world, &up).unwrap_err();
        assert!(
            refused.ends_with("Broker 2 does not support this feature."),
            "{refused}"
        );
        world.broker(2, &[]);
        assert!(ask(&mut world, &up).is_ok());
        let controller = |id: i32, max| RegisterControllerRecord {
            controller_id: id,
            features: vec![ControllerFeature {
                name: "group.version".into(),
                max_supported_version: max,
                ..ControllerFeature::default()
            }],
            ..RegisterControllerRecord::default()
        };
        world.settings.static_voters = [NodeId(1), NodeId(3)].into();
        let refused = ask(&mut world, &up).unwrap_err();
        assert!(
            refused.contains("controller 3 has not registered"),
            "{refused}"
        );
        world.replay(&Record::RegisterController(controller(3, 0)).at(0));
        let refused = ask(&mut world, &up).unwrap_err();
        assert!(
            refused.contains("Controller 3 does not support"),
            "{refused}"
        );
        world.replay(&Record::RegisterController(controller(3, 1)).at(0));
        assert!(ask(&mut world, &up).is_ok());
    }

    /// KIP-853: the level is the quorum's own; only the record that the reply waits for is ours.
    #[test]
    fn kraft_version_rises_through_the_quorum_and_never_falls() {
        let mut world = World::at_level(33);
        let noop = ["NO_OP_RECORD {}"];
        let asked = |world: &mut World, level, upgrade_type, validate_only| {
            let Request::UpdateFeatures(body) = request(&[(KRAFT_VERSION, level, upgrade_type)])
            else {
                unreachable!()
            };
            let body = body.with_validate_only(validate_only);
            world.ask(2, Request::UpdateFeatures(body)).unwrap()
        };
        assert_eq!(
            ask(&mut world, &[(KRAFT_VERSION, 1, UPGRADE)]).unwrap(),
            noop
        );
        assert_eq!(asked(&mut world, 1, UPGRADE, false).kraft_version, None);
        let refused = ask(&mut world, &[(KRAFT_VERSION, 0, SAFE_DOWNGRADE)]).unwrap_err();
        assert!(
            refused.ends_with(
                "Invalid update version 0 for feature kraft.version. Can't downgrade the version \
                 of this feature."
            ),
            "{refused}"
        );
        let refused = ask(&mut world, &[(KRAFT_VERSION, 0, UPGRADE)]).unwrap_err();
        assert!(
            refused.contains("without setting the upgrade type"),
            "{refused}"
        );

        world.kraft_version = 0;
        assert_eq!(
            ask(&mut world, &[(KRAFT_VERSION, 1, UPGRADE)]).unwrap(),
            noop
        );
        for validate_only in [false, true] {
            let decision = asked(&mut world, 1, UPGRADE, validate_only);
            assert_eq!(decision.records.is_empty(), validate_only);
            let level = 1;
            let upgrade = KraftUpgrade {
                level,
                validate_only,
            };
            assert_eq!(decision.kraft_version, Some(upgrade));
        }
        let refused = ask(&mut world, &[(KRAFT_VERSION, 1, SAFE_DOWNGRADE)]).unwrap_err();
        assert!(
            refused.ends_with("Can't downgrade to a newer version."),
            "{refused}"
        );
        let refused = ask(&mut world, &[(KRAFT_VERSION, 2, UPGRADE)]).unwrap_err();
        assert!(refused.contains("only supports versions 0-1"), "{refused}");
    }

    #[test]
    fn results_are_told_for_each_feature_until_version_1_and_validation_writes_nothing() {
        let mut world = World::at_level(33);
        for (version, count) in [(0, 1), (1, 1), (2, 0)] {
            let Request::UpdateFeatures(body) = request(&[("group.version", 0, 2)]) else {
                unreachable!()
            };
            let body = body.with_validate_only(true);
            let decision = world.ask(version, Request::UpdateFeatures(body)).unwrap();
            assert!(decision.records.is_empty());
            let Reply::UpdateFeatures(reply) = decision.reply else {
                unreachable!()
            };
            assert_eq!(reply.results.len(), count, "version {version}");
        }
    }
}
