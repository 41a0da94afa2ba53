//! What a sentence shows of a long text.

use super::keys::{self, Kind};
use super::tests::load_lines;

/// Values that look like what some key takes.
fn shapes(x: &str) -> [String; 7] {
    [
        x.to_owned(),
        format!("{x},{x}"),
        format!("{x}:{x}"),
        format!("a:{x},CONTROLLER:{x}"),
        format!("CONTROLLER://{x}:9093"),
        format!("1@{x}:9093"),
        format!("{x}://h:1,{x}://h:2"),
    ]
}

/// Files whose checks look at several keys, or at the name of one.
fn files_with(x: &str) -> Vec<Vec<String>> {
    const ENV: &str = "org.apache.kafka.common.config.provider.EnvVarConfigProvider";
    const FILES: &str = "org.apache.kafka.common.config.provider.FileConfigProvider";
    const STANDARD: &str = "org.apache.kafka.metadata.authorizer.StandardAuthorizer";
    let env = format!("config.providers.env.class={ENV}");
    let files = format!("config.providers.files.class={FILES}");
    let standard = format!("authorizer.class.name={STANDARD}");
    let both = "controller.listener.names";
    vec![
        vec![format!("{x}=1")],
        vec![format!("kraftd.{x}=1")],
        vec![format!("listener.name.{x}.max.connections=1")],
        vec![format!("listener.name.controller.{x}=1")],
        vec![format!("kraftd.alter.config.policy.range.{x}={x}..")],
        vec![format!("kraftd.alter.config.policy.range.{x}=1..2")],
        vec![
            format!("kraftd.alter.config.policy.range.{x}=1..2"),
            format!("kraftd.alter.config.policy.allowed.keys={x}"),
            format!("kraftd.alter.config.policy.denied.keys={x}"),
        ],
        vec![format!("config.providers={x}")],
        vec![
            format!("config.providers={x}"),
            format!("config.providers.{x}.class={x}"),
        ],
        vec![
            "config.providers=env".to_owned(),
            env.clone(),
            format!("{x}=${{env:{x}}}"),
            format!("num.partitions=${{env:{x}:{x}}}"),
        ],
        vec![
            "config.providers=files".to_owned(),
            files.clone(),
            format!("num.partitions=${{files:/{x}:{x}}}"),
        ],
        vec![
            "config.providers=files".to_owned(),
            files.clone(),
            format!("config.providers.files.param.allowed.paths=/{x}"),
        ],
        vec![standard.clone(), format!("super.users={x}")],
        vec![standard.clone(), format!("super.users=User:{x},User:b")],
        vec![
            format!("listeners=CONTROLLER://:1,{x}://:2"),
            format!("listener.security.protocol.map=CONTROLLER:SSL,{x}:SSL"),
        ],
        vec![
            format!("listeners={x}://:1"),
            format!("{both}={x}"),
            format!("listener.security.protocol.map={x}:SSL"),
        ],
        vec![format!("listeners={x}://:1"), format!("{both}={x}")],
        vec![format!("controller.quorum.voters=1@{x}:1,2@{x}:1")],
    ]
}

/// Of each value, name and entry that a file has, a sentence shows a beginning.
#[test]
fn what_a_file_holds_makes_no_sentence_long() {
    let mut said = 0;
    for filling in ["x", "\u{1b}", "日", "\""] {
        let x = filling.repeat(2_000);
        let mut files_with_x = files_with(&x);
        for value in shapes(&x) {
            let all = keys::all().map(|key| format!("{}={value}", key.name));
            files_with_x.push(all.collect());
        }
        // What one key says may hide what another would: those with entries each by itself.
        if filling == "x" {
            let maps = [
                "listener.security.protocol.map",
                "max.connections.per.ip.overrides",
            ];
            let keys = keys::all().filter(|key| key.kind == Kind::List || maps.contains(&key.name));
            files_with_x.extend(keys.flat_map(|key| {
                let line = |value| vec![format!("{}={value}", key.name)];
                shapes(&x).map(line)
            }));
        }
        for lines in files_with_x {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            let found = load_lines(&lines);
            for finding in found.map_or_else(|all| all, |loaded| loaded.warnings) {
                let sentence = finding.to_string();
                let length = sentence.chars().count();
                assert!(length < 900, "{length} characters: {sentence}");
                said += 1;
            }
        }
    }
    assert!(said > 2_000, "{said} sentences");
}
