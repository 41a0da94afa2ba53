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
    Row {
        api: "DescribeDelegationToken",
        fits: |place| place == ".error_code: -1, 64",
        reason: "Java's controller advertises it without a handler; the listener allows no tokens",
    },
    Row {
        api: "DescribeUserScramCredentials",
        fits: |place| place == ".error_code: -1, 0" || place.starts_with(".results"),
        reason: "Java's controller advertises it without a handler; kraftd answers as brokers do",
    },
];

fn tells_bounds_by_name(place: &str) -> bool {
    let told = ["greater", "less"].map(|than| format!("must be {than} than or equal to group."));
    place.contains("error_message") && told.iter().any(|told| place.contains(told))
}

/// The list, and which of its rows were met.
#[derive(Debug, Default)]
pub(crate) struct Allowed {
    met: [u32; ROWS.len()],
}

impl Allowed {
    /// Whether every place of the difference is accepted by a row.
    pub(crate) fn accepts(&mut self, difference: &Difference) -> bool {
        let mut used = Vec::new();
        for place in &difference.places {
            let row = ROWS
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
        let rows = ROWS.iter().zip(&self.met).filter(|(_, met)| **met > 0);
        rows.map(|(row, met)| format!("{met} x {}: {}", row.api, row.reason))
            .collect()
    }

    /// Rows that nothing met: what provokes them stands in `generate::provoked`.
    pub(crate) fn unused(&self) -> Vec<&'static str> {
        let rows = ROWS.iter().zip(&self.met);
        rows.filter(|(_, met)| **met == 0)
            .map(|(row, _)| row.reason)
            .collect()
    }
}
