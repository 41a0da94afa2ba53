//! The JSON of `kraftd state` in the words of Java: the lines that the metadata shell's `tree /`
//! prints of the same image.

use serde_json::Value;

/// The lines below `image:`, two blanks a level, names sorted as the shell sorts them.
pub(crate) fn java_tree(document: &Value) -> Vec<String> {
    let mut lines = vec!["image:".to_owned()];
    walk(&mut Vec::new(), document, &mut lines);
    lines
}

fn walk(path: &mut Vec<String>, value: &Value, lines: &mut Vec<String>) {
    let indent = "  ".repeat(path.len() + 1);
    let Some(fields) = value.as_object().filter(|_| !is_entry(path)) else {
        // The shell has an empty name for a default entity, and shows nothing in it.
        lines.push(format!(
            "{indent}{}",
            leaf(path, value).replace('\n', "\\n")
        ));
        return;
    };
    let mut names: Vec<&String> = fields.keys().collect();
    names.sort_by_key(|name| name.encode_utf16().collect::<Vec<u16>>());
    for name in names {
        lines.push(format!("{indent}{name}:"));
        path.push(name.clone());
        walk(path, &fields[name], lines);
        path.pop();
    }
}

/// Whether the node at this path has fields of its own and no nodes.
fn is_entry(path: &[String]) -> bool {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match path[..] {
        ["acls", "byId", _]
        | ["cluster", _, _]
        | ["delegationToken", _]
        | ["provenance"]
        | ["scram", _, _] => true,
        ["topics", _, _, partition] => partition.parse::<i32>().is_ok(),
        _ => false,
    }
}

fn leaf(path: &[String], value: &Value) -> String {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match path[..] {
        ["acls", ..] => format!("StandardAcl[{}]", fields(value)),
        ["cluster", "brokers", _] => broker(value),
        ["cluster", ..] => controller(value),
        ["clientQuotas", ..] => java_double(value.as_f64().expect("a number")),
        ["delegationToken", _] => token(value),
        ["features", "metadataVersion"] => match value {
            Value::Null => "Optional.empty".to_owned(),
            name => format!("Optional[{}]", plain(name)),
        },
        ["provenance"] => format!(
            "offset {}, epoch {}, time {}[UTC]",
            value["offset"],
            value["epoch"],
            match &value["time"] {
                Value::Null => java_time("1969-12-31T23:59:59.999Z"),
                time => java_time(plain(time).as_str()),
            }
        ),
        ["scram", _, _] => format!("ScramCredentialData({})", fields(value)),
        ["topics", _, _, partition] if partition.parse::<i32>().is_ok() => {
            format!("PartitionRegistration({})", fields(value))
        }
        _ => plain(value),
    }
}

/// `a=1, b=[2, 3]`, in our order, which is Java's.
fn fields(value: &Value) -> String {
    let fields = value.as_object().expect("an object").iter();
    let each = fields.map(|(name, value)| format!("{name}={}", plain(value)));
    each.collect::<Vec<_>>().join(", ")
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => {
            let each: Vec<String> = values.iter().map(plain).collect();
            format!("[{}]", each.join(", "))
        }
        other => other.to_string(),
    }
}

/// Without the zeros that Java leaves out.
fn java_time(time: &str) -> String {
    let time = time.strip_suffix('Z').expect("UTC");
    format!("{}Z", time.trim_end_matches('0').trim_end_matches('.'))
}

/// As Double.toString of the numbers that quotas have.
fn java_double(value: f64) -> String {
    if value == 0.0 || (1e-3..1e7).contains(&value.abs()) {
        return format!("{value:?}");
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').expect("an exponent");
    let point = if digits.contains('.') { "" } else { ".0" };
    format!("{digits}{point}E{exponent}")
}

fn listeners(value: &Value) -> String {
    let each = value["listeners"].as_array().expect("a list").iter();
    let each = each.map(|it| {
        format!(
            "Endpoint(listenerName='{}', securityProtocol={}, host='{}', port={})",
            plain(&it["listenerName"]),
            plain(&it["securityProtocol"]),
            plain(&it["host"]),
            it["port"]
        )
    });
    format!("[{}]", each.collect::<Vec<_>>().join(", "))
}

fn supported(value: &Value) -> String {
    let each = value["supportedFeatures"].as_object().expect("an object");
    let each = each
        .iter()
        .map(|(name, range)| match (&range["min"], &range["max"]) {
            (min, max) if min == max => format!("{name}: {min}"),
            (min, max) if *max == i64::from(i16::MAX) => format!("{name}: {min}+"),
            (min, max) => format!("{name}: {min}-{max}"),
        });
    format!("{{{}}}", each.collect::<Vec<_>>().join(", "))
}

fn broker(value: &Value) -> String {
    let rack = match &value["rack"] {
        Value::Null => "Optional.empty".to_owned(),
        rack => format!("Optional[{}]", plain(rack)),
    };
    format!(
        "BrokerRegistration(id={}, epoch={}, incarnationId={}, listeners={}, supportedFeatures={}, \
         rack={rack}, fenced={}, inControlledShutdown={}, isMigratingZkBroker={}, directories={}, \
         cordonedDirectories={})",
        value["id"],
        value["epoch"],
        plain(&value["incarnationId"]),
        listeners(value),
        supported(value),
        value["fenced"],
        value["inControlledShutdown"],
        value["isMigratingZkBroker"],
        plain(&value["directories"]),
        plain(&value["cordonedDirectories"]),
    )
}

fn controller(value: &Value) -> String {
    format!(
        "ControllerRegistration(id={}, incarnationId={}, zkMigrationReady={}, listeners={}, \
         supportedFeatures={})",
        value["id"],
        plain(&value["incarnationId"]),
        value["zkMigrationReady"],
        listeners(value),
        supported(value),
    )
}

/// Java's parentheses are not balanced.
fn token(value: &Value) -> String {
    let renewers = match &value["renewers"] {
        Value::Array(names) => names.iter().map(plain).collect::<Vec<_>>().join(" "),
        masked => plain(masked),
    };
    format!(
        "DelegationTokenDatatokenId={}(owner={}(tokenRequester={}(renewers={renewers}, \
         issueTimestamp={}, maxTimestamp={}), expiryTimestamp={}",
        plain(&value["tokenId"]),
        plain(&value["owner"]),
        plain(&value["tokenRequester"]),
        plain(&value["issueTimestamp"]),
        plain(&value["maxTimestamp"]),
        plain(&value["expiryTimestamp"]),
    )
}

#[cfg(test)]
mod tests {
    use super::{java_double, java_time};

    #[test]
    fn numbers_and_times_are_written_as_java_writes_them() {
        for (value, text) in [
            (0.0, "0.0"),
            (1.5, "1.5"),
            (1024.0, "1024.0"),
            (9_999_999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (12_345_678.9, "1.23456789E7"),
            (0.0001, "1.0E-4"),
        ] {
            assert_eq!(java_double(value), text);
        }
        assert_eq!(
            java_time("2026-01-31T12:00:00.000Z"),
            "2026-01-31T12:00:00Z"
        );
        assert_eq!(
            java_time("2026-01-31T12:00:00.120Z"),
            "2026-01-31T12:00:00.12Z"
        );
    }
}
