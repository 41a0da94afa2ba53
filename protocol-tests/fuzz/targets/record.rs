//! Any bytes as a record's value: they are refused, or read, printed and written again as a record
//! that is read alike. A good corpus are the values of `fixtures/*/records/instances.tsv`.

#![no_main]

use kraftd::records::VersionedRecord;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(record) = VersionedRecord::decode(bytes) else {
        return;
    };
    let _ = record.record.json(record.version).to_string();
    let written = record.encode().expect("what was read fits its version");
    let again = VersionedRecord::decode(&written).expect("what was written reads");
    // A quota that is not a number does not equal itself; its text does.
    assert_eq!(format!("{again:?}"), format!("{record:?}"));
    assert_eq!(again.encode().expect("as before"), written);
});
