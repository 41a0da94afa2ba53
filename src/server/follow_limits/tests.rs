//! What holds of the file and of dynamic limits, and what is told.

use super::super::listener::tests::sockets;
use super::*;
use crate::image::configs;
use crate::records::{ConfigRecord, Record};
use crate::types::Offset;

fn set(image: &mut Image, node: &str, key: &str, value: Option<&str>) {
    let record = ConfigRecord {
        resource_type: configs::BROKER,
        resource_name: node.into(),
        name: key.into(),
        value: value.map(str::to_owned),
        ..ConfigRecord::default()
    };
    image.replay(&Record::Config(record), Offset(0)).unwrap();
}

#[test]
fn a_dynamic_limit_that_would_let_nobody_in_is_not_applied_and_is_told() {
    let mut image = Image::empty();
    let file = sockets();
    let own = "listener.name.controller.";
    let settings = Settings::default();
    let node = settings.node_id;
    let holds = |image: &Image| values(image, node, &file, &[(own, (5, 6))], &[]);
    let without = holds(&image);
    for (name, keys) in [
        ("", vec![MAX.to_owned(), RATE.to_owned()]),
        ("", vec![format!("{own}{MAX}"), format!("{own}{RATE}")]),
        (&node.to_string(), vec![MAX.to_owned(), PER_IP.to_owned()]),
    ] {
        for key in &keys {
            set(&mut image, name, key, Some("0"));
        }
        let found = holds(&image);
        let shut = Values {
            shut: found.shut,
            ..without.clone()
        };
        assert_eq!(found, shut, "{keys:?}");
        let told = complaints(&image, &settings, &found);
        assert_eq!(told.len(), keys.len(), "{told:?}");
        for key in &keys {
            let start = format!("{key}=0 of ");
            let sentence = told.iter().find(|it| it.starts_with(&start)).unwrap();
            assert!(sentence.contains("nobody could connect"), "{sentence}");
            set(&mut image, name, key, None);
        }
    }
    // One address may be shut out, all may not.
    set(&mut image, "", PER_IP, Some("0"));
    set(&mut image, "", OVERRIDES, Some("10.0.0.1:0"));
    let found = holds(&image);
    let file_counts = Values {
        shut: true,
        ..without
    };
    assert_eq!(found, file_counts);
    assert_eq!(complaints(&image, &settings, &found).len(), 2);
    set(&mut image, "", OVERRIDES, Some("10.0.0.1:1"));
    assert_eq!(holds(&image).per_ip_max, 0);
}

#[test]
fn overrides_that_shut_out_the_only_address_are_not_applied_and_are_told() {
    let mut image = Image::empty();
    let (file, settings) = (sockets(), Settings::default());
    let only = [IpAddr::from(Ipv4Addr::LOCALHOST)];
    let holds = |image: &Image, only: &[IpAddr]| {
        let found = values(image, settings.node_id, &file, &[], only);
        let told = complaints(image, &settings, &found);
        (found, told)
    };
    let (without, _) = holds(&image, &only);
    set(&mut image, "", OVERRIDES, Some("127.0.0.1:0"));
    let (found, told) = holds(&image, &only);
    assert_eq!(found.overrides, without.overrides);
    assert_eq!(told.len(), 1, "{told:?}");
    let start = format!("{OVERRIDES}=127.0.0.1:0 of all nodes is stored and has no effect: ");
    assert!(told[0].starts_with(&start), "{told:?}");
    assert!(told[0].contains(NOBODY_CONNECTS), "{told:?}");
    // Others can connect to a listener that others reach.
    let (found, told) = holds(&image, &[]);
    assert_eq!(found.overrides, [("127.0.0.1".to_owned(), 0)]);
    assert!(told.is_empty(), "{told:?}");
}

#[test]
fn a_limit_of_a_listener_that_is_not_there_is_told_where_it_is_of_this_node() {
    let mut image = Image::empty();
    let node = NodeId(3);
    let told = |image: &Image| of_no_listener(image, node, &["listener.name.controller."]);
    for name in ["", "3"] {
        for listener in ["controller", "nope"] {
            set(
                &mut image,
                name,
                &format!("listener.name.{listener}.{MAX}"),
                Some("5"),
            );
        }
    }
    let found = told(&image);
    assert_eq!(found.len(), 1, "{found:?}");
    let start = "listener.name.nope.max.connections=5 of node 3 is stored and has no effect: \
                 this node has no listener 'nope'";
    assert!(found[0].starts_with(start), "{found:?}");
}

#[test]
fn overrides_are_told_as_they_are_written_and_each_value_once() {
    let mut image = Image::empty();
    let (mut file, settings) = (sockets(), Settings::default());
    let node = settings.node_id;
    let told = |image: &Image, file: &config::Sockets| {
        let found = values(image, node, file, &[], &[]);
        let told = complaints(image, &settings, &found);
        let short = told.iter().map(|it| {
            let (value, rest) = it.split_once(" is stored and has no effect: ").unwrap();
            let (_, counts) = rest.split_once("; ").unwrap();
            let (counts, _) = counts.split_once(" counts in its place").unwrap();
            (value.to_owned(), counts.to_owned())
        });
        short.collect::<Vec<_>>()
    };
    let of = |node: bool, key: &str, value: &str| match node {
        true => format!("{key}={value} of node {}", settings.node_id),
        false => format!("{key}={value} of all nodes"),
    };
    set(&mut image, "", OVERRIDES, Some("nobody"));
    let unreadable = |counts: &str| (of(false, OVERRIDES, "nobody"), counts.to_owned());
    assert_eq!(told(&image, &file), [unreadable("nothing")]);
    let hosts = [("10.0.0.1", 0), ("10.0.0.2", 0)];
    let hosts = hosts.map(|(host, max)| (host.to_owned(), max));
    file.connections_per_ip_overrides.extend(hosts);
    let written = "10.0.0.1:0,10.0.0.2:0";
    assert_eq!(told(&image, &file), [unreadable(written)]);

    // No address could connect, and one of the values cannot be read besides.
    set(&mut image, "", PER_IP, Some("0"));
    set(&mut image, &node.to_string(), PER_IP, Some("abc"));
    let max = file.connections_per_ip_max.to_string();
    let expected = [
        (of(true, PER_IP, "abc"), max.clone()),
        (of(false, PER_IP, "0"), max),
        unreadable(written),
    ];
    assert_eq!(told(&image, &file), expected);
}

#[test]
fn a_dynamic_value_that_nothing_comes_of_is_told_once_on_one_line() {
    let mut image = Image::empty();
    let (file, settings) = (sockets(), Settings::default());
    let node = settings.node_id;
    let mut seen = Seen::default();
    let news = |image: &Image, seen: &mut Seen| {
        let found = values(image, node, &file, &[], &[]);
        let changes = seen.changes(image, node);
        let sentences = complaints(image, &settings, &found);
        if changes {
            seen.news(sentences)
        } else {
            Default::default()
        }
    };
    assert_eq!(news(&image, &mut seen), (Vec::new(), 0));
    set(&mut image, "", MAX, Some("a\nbc"));
    let (told, _) = news(&image, &mut seen);
    assert_eq!(told.len(), 1);
    let start = "max.connections=a\\nbc of all nodes is stored and has no effect: ";
    assert!(told[0].starts_with(start), "{told:?}");
    let end = "; 2147483647 counts in its place; set another value, or delete it with \
               kafka-configs";
    assert!(told[0].ends_with(end), "{told:?}");
    set(&mut image, "", OVERRIDES, Some("nobody"));
    assert_eq!(news(&image, &mut seen).0.len(), 1, "the new one only");
    assert_eq!(news(&image, &mut seen), (Vec::new(), 0));
    for listener in 0..TOLD_MAX + 5 {
        let key = format!("listener.name.x{listener}.{MAX}");
        set(&mut image, "", &key, Some(&"9".repeat(1_000)));
    }
    let (told, more) = news(&image, &mut seen);
    assert_eq!((told.len(), more), (TOLD_MAX, 5));
    assert!(told.iter().all(|it| it.len() < 600), "{told:?}");
}

#[test]
fn limits_of_this_node_stand_above_those_of_all_and_those_above_the_file() {
    let mut image = Image::empty();
    let mut file = sockets();
    file.connections_max = 7;
    let holds = |image: &Image| {
        let listeners = [("listener.name.controller.", (5, 6))];
        values(image, NodeId(3), &file, &listeners, &[])
    };
    assert_eq!(holds(&image).connections_max, 7);
    set(&mut image, "", MAX, Some("100"));
    assert_eq!(holds(&image).connections_max, 100);
    set(&mut image, "3", MAX, Some("50"));
    set(&mut image, "4", MAX, Some("1"));
    assert_eq!(holds(&image).connections_max, 50);
    for wrong in ["-1", "many", ""] {
        set(&mut image, "3", MAX, Some(wrong));
        assert_eq!(holds(&image).connections_max, 100, "{wrong}");
    }
    set(&mut image, "3", MAX, None);
    set(&mut image, "", MAX, None);
    assert_eq!(holds(&image).connections_max, 7);

    set(&mut image, "", RATE, Some("9"));
    set(
        &mut image,
        "",
        "listener.name.controller.max.connections",
        Some("2"),
    );
    let found = holds(&image);
    assert_eq!((found.rate_max, found.listeners), (9, vec![(2, 6)]));

    set(&mut image, "", PER_IP, Some("0"));
    assert_eq!(holds(&image).per_ip_max, file.connections_per_ip_max);
    set(&mut image, "", OVERRIDES, Some("127.0.0.1:4"));
    let found = holds(&image);
    let overrides = vec![("127.0.0.1".to_owned(), 4)];
    assert_eq!((found.per_ip_max, found.overrides), (0, overrides));
}
