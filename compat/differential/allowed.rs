//! Differences that are accepted on purpose, each with its reason. One that no run of the tests
//! meets any more fails them: see [`Allowed::unused`].

/// One step in which the two sides differ.
#[derive(Debug)]
pub(crate) struct Difference {
    /// The API that was asked.
    pub(crate) api: &'static str,
    /// The request, decoded.
    pub(crate) request: String,
    /// Each place in which the answers or the records differ: `place: Java's, kraftd's`.
    pub(crate) places: Vec<String>,
}

/// An accepted difference.
#[derive(Debug)]
struct Row {
    api: &'static str,
    /// Holds for every place of a step in which the two sides differ in this way only.
    fits: fn(place: &str) -> bool,
    /// Why it stays.
    reason: &'static str,
}

const ROWS: &[Row] = &[
    Row {
        api: "UpdateFeatures",
        fits: |place| place.contains("error_message") && place.matches("Controller ").count() == 2,
        reason: "of several nodes that lack a level Java names the first in a hash map's order",
    },
    Row {
        api: "IncrementalAlterConfigs",
        fits: tells_bounds_by_name,
        reason: "below 4.4's level a group's bounds are told by their keys, as 4.3 did",
    },
    Row {
        api: "AlterConfigs",
        fits: tells_bounds_by_name,
        reason: "below 4.4's level a group's bounds are told by their keys, as 4.3 did",
    },
    TOKENS_NOT_DESCRIBED,
    CREDENTIALS_NOT_DESCRIBED,
];

const TOKENS_NOT_DESCRIBED: Row = Row {
    api: "DescribeDelegationToken",
    fits: |place| place == ".error_code: -1, 64",
    reason: "Java's controller advertises it without a handler; the listener allows no tokens",
};
const CREDENTIALS_NOT_DESCRIBED: Row = Row {
    api: "DescribeUserScramCredentials",
    fits: |place| place == ".error_code: -1, 0" || place.starts_with(".results"),
    reason: "Java's controller advertises it without a handler; kraftd answers as brokers do",
};

fn tells_bounds_by_name(place: &str) -> bool {
    let told = ["greater", "less"].map(|than| format!("must be {than} than or equal to group."));
    place.contains("error_message") && told.iter().any(|told| place.contains(told))
}

/// What may differ where odd values are asked for.
const ODD_ROWS: &[Row] = &[
    TOKENS_NOT_DESCRIBED,
    CREDENTIALS_NOT_DESCRIBED,
    Row {
        api: "BrokerRegistration",
        fits: |place| place == ".error_code: -1, 119" || is_resignation(place),
        reason: "a listener without host, port or protocol: Java's controller resigns",
    },
    Row {
        api: "ControllerRegistration",
        fits: |place| {
            let told = place.starts_with(".error_message") && place.contains("istener PLAINTEXT");
            told || place == ".error_code: -1, 42" || is_resignation(place)
        },
        reason: "a listener without host, port or protocol: Java's controller resigns",
    },
    Row {
        api: "AlterUserScramCredentials",
        fits: |place| {
            let told = "null, \"The salted password must not be empty\"";
            place.ends_with(".error_code: -1, 93") || place.ends_with(told)
        },
        reason: "an empty salted password: Java's controller meets an error of its own",
    },
    Row {
        api: "IncrementalAlterConfigs",
        fits: |place| {
            let refused = "null, \"Unable to parse broker name as a base 10 number.\"";
            let written = place.contains("CONFIG_RECORD") && place.ends_with(", null");
            written || place.ends_with(".error_code: 0, 42") || place.ends_with(refused)
        },
        reason: "the id of a broker in digits of another script",
    },
];

fn is_resignation(place: &str) -> bool {
    place.starts_with("Java's controller has resigned")
}

/// A list, and which of its rows were met.
#[derive(Debug)]
pub(crate) struct Allowed {
    rows: &'static [Row],
    met: Vec<u32>,
}

impl Allowed {
    /// For what chance asks.
    pub(crate) fn by_chance() -> Self {
        Self::of(ROWS)
    }

    /// For odd values.
    pub(crate) fn odd() -> Self {
        Self::of(ODD_ROWS)
    }

    fn of(rows: &'static [Row]) -> Self {
        let met = vec![0; rows.len()];
        Self { rows, met }
    }

    /// Whether every place of the difference is accepted by a row.
    pub(crate) fn accepts(&mut self, difference: &Difference) -> bool {
        let mut used = Vec::new();
        for place in &difference.places {
            let row = self
                .rows
                .iter()
                .position(|row| row.api == difference.api && (row.fits)(place));
            match row {
                Some(at) => used.push(at),
                None => return false,
            }
        }
        used.dedup();
        for at in used {
            self.met[at] += 1;
        }
        true
    }

    /// What was met how often, for the end of a run.
    pub(crate) fn summary(&self) -> Vec<String> {
        let rows = self.rows.iter().zip(&self.met).filter(|(_, met)| **met > 0);
        rows.map(|(row, met)| format!("{met} x {}: {}", row.api, row.reason))
            .collect()
    }

    /// Rows that nothing met: what provokes them stands in `generate::provoked`.
    pub(crate) fn unused(&self) -> Vec<&'static str> {
        let rows = self.rows.iter().zip(&self.met);
        rows.filter(|(_, met)| **met == 0)
            .map(|(row, _)| row.reason)
            .collect()
    }
}
