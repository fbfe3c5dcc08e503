//! Tests of files of the program that stand alone: numbers, sizes, work on all cores, and
//! writing.

mod units {
    use crate::units::{
        Number, TimeArg, Unit, did_you_mean, parse_rate, parse_size, parse_time, show_bytes,
    };

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("64KiB", 65536),
            ("64kib", 65536),
            ("64 KiB", 65536),
            ("1.5MiB", 3 << 19),
            ("2GB", 2_000_000_000),
            ("10B", 10),
            ("8192TiB", 1 << 53),
            ("8PiB", 1 << 53),
            ("0.0078125EiB", 1 << 53),
            ("9PB", 9_000_000_000_000_000),
            ("1.000", 1),
            ("64k", 64 << 10),
            ("1M", 1 << 20),
            ("4MB", 4_000_000),
            ("1e3", 1000),
            ("1.5e3", 1500),
            ("2e3KiB", 2_048_000),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in [
            "",
            "KiB",
            "-1",
            "1e",
            "e3",
            "1e-3",
            "1.5e0",
            "1e99",
            "1.5",
            "0.3KiB",
            "x",
            "1 2",
            ".",
            "8193TiB",
            "8.1PiB",
            "1EiB",
            "0.008EB0",
            "99999999999GiB",
            "99999999999999999999999",
            "inf",
            "nan",
            "1.00000000000000000000001KiB",
        ] {
            assert!(parse_size(text).is_err(), "{text}");
        }
        // Beyond the limit, the message names the limit, whatever the unit is.
        for text in [
            "9007199254740993",
            "8193TiB",
            "9PiB",
            "10PB",
            "1EiB",
            "1EB",
            "99EiB",
            "1.5EiB",
        ] {
            let message = parse_size(text).unwrap_err();
            assert!(message.contains("limit of 8 PiB"), "{text}: {message}");
        }
    }

    #[test]
    fn suggestions() {
        let names = || ["broadcast", "reduce", "reduce_scatter"].into_iter();
        let expected = "; did you mean 'broadcast'?";
        assert_eq!(did_you_mean("brodcast", names()), expected);
        assert_eq!(did_you_mean("redcue", names()), "; did you mean 'reduce'?");
        assert_eq!(did_you_mean("xyz", names()), "");
        // Half of a short name is another name.
        assert_eq!(did_you_mean("ring", ["bine"].into_iter()), "");
    }

    #[test]
    fn times() {
        for (text, value, has_unit) in [
            ("10", 10.0, false),
            ("0.25", 0.25, false),
            ("250ns", 250.0, true),
            ("1us", 1e3, true),
            ("1.5ms", 1.5e6, true),
            ("2s", 2e9, true),
            ("1e-3", 1e-3, false),
        ] {
            assert_eq!(parse_time(text), Ok(TimeArg { value, has_unit }), "{text}");
        }
        for text in ["", "s", "-1", "nan", "inf", "-0.5us", "1 day", "1e999"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn bandwidths() {
        for (text, ns_per_byte) in [
            ("10GB/s", 0.1),
            ("0.5 gib/s", 2e9 / (1u64 << 30) as f64),
            ("1MB/s", 1000.0),
            ("0.1ns", 0.1),
        ] {
            let rate = parse_rate(text).unwrap();
            assert_eq!((rate.value, rate.has_unit), (ns_per_byte, true), "{text}");
        }
        assert_eq!(parse_rate("3").map(|rate| rate.has_unit), Ok(false));
        for text in ["0GB/s", "-1GB/s", "GB/s", "10/s", "infGB/s", "10Gbit/s"] {
            let error = parse_rate(text).unwrap_err();
            assert!(error.contains("is not a bandwidth"), "{text}: {error}");
        }
    }

    #[test]
    fn shown() {
        let ns = Unit::Nanoseconds;
        assert_eq!(ns.show(34_300.0), "34.3 us");
        assert_eq!(ns.show(0.0), "0 ns");
        assert_eq!(ns.show(0.1), "0.1 ns");
        assert_eq!(Unit::Plain.show(39.0), "39");
        assert_eq!(Unit::Plain.show(1.0 / 3.0), "0.3333333");
        assert_eq!(show_bytes(65536), "64 KiB");
        assert_eq!(show_bytes(100), "100 B");
        assert_eq!(show_bytes(1025), "1.001 KiB");
        assert_eq!(show_bytes(1 << 53), "8 PiB");
        assert_eq!(show_bytes(3 << 59), "1.5 EiB");
        assert_eq!(
            serde_json::to_string(&[Number(39.0), Number(0.5)]).unwrap(),
            "[39,0.5]"
        );
    }
}

mod ranges {
    use crate::ranges::{parse_counts, parse_sizes};

    fn sizes(text: &str, factor: u64) -> Vec<u64> {
        parse_sizes(text).unwrap().values(factor)
    }

    #[test]
    fn ranges_and_lists() {
        assert_eq!(sizes("64KiB..256k", 2), [65536, 131_072, 262_144]);
        assert_eq!(sizes("1..100", 4), [1, 4, 16, 64, 100]);
        assert_eq!(sizes("1..100*4", 2), [1, 4, 16, 64, 100]);
        assert_eq!(sizes("1..100..*4", 2), [1, 4, 16, 64, 100]);
        assert_eq!(sizes("100,1..8,4", 2), [1, 2, 4, 8, 100]);
        assert_eq!(sizes("0,5..5", 2), [0, 5]);
        assert_eq!(sizes("1..9007199254740992", 1 << 52).len(), 3);
        assert_eq!(sizes("0", 2), [0]);
        assert_eq!(
            parse_counts("2,3,5..=9").unwrap().counts(),
            [2, 3, 5, 6, 7, 8, 9]
        );
        assert_eq!(
            parse_counts("2..64").unwrap().counts(),
            [2, 4, 8, 16, 32, 64]
        );
        assert_eq!(parse_counts("7").unwrap().one("-p").unwrap(), 7);
        assert!(parse_counts("0..=2").unwrap().one("-p").is_err());
    }

    #[test]
    fn invalid_ranges_are_refused() {
        for text in [
            "",
            "..",
            "1..",
            "..1",
            "2..1",
            "0..8",
            "1...8",
            "x..8",
            "1-8",
            "8TiB..1",
            "1..8*1",
            "1..8*x",
            "1,,2",
            "1..=8*2",
            "1..=200000",
        ] {
            assert!(parse_sizes(text).is_err(), "{text}");
        }
    }
}

mod parallel {
    use crate::parallel::map;

    #[test]
    fn results_are_in_order_and_refusals_are_tried_again() {
        let items: Vec<u64> = (0..100).collect();
        let each = |&item: &u64, at_once: usize| match item % 7 {
            0 if at_once > 1 => None,
            _ => Some(item * item),
        };
        let squares = map(&items, |&item| item << 20, each, Option::is_none);
        let expected: Vec<_> = items.iter().map(|item| Some(item * item)).collect();
        assert_eq!(squares, expected);
    }
}

mod writer {
    use std::fs;
    use std::time::Duration;

    use crate::writer::Writer;

    #[test]
    fn waiting_for_another_writer_ends_after_a_timeout() {
        let folder = std::env::temp_dir().join(format!("oneport-writer-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("r.json");
        let timeout = Duration::from_millis(20);
        let first = Writer::open(&path).unwrap();
        let message = format!("{:#}", Writer::open_within(&path, timeout).unwrap_err());
        for part in [
            "cannot write ",
            "r.json: another process has",
            ".r.json.oneport-tmp locked",
        ] {
            assert!(message.contains(part), "{message}");
        }
        // The second writer reads what the first has written.
        first.write(b"first").unwrap();
        let second = Writer::open(&path).unwrap();
        assert_eq!(second.current().unwrap().as_deref(), Some(&b"first"[..]));
        drop(second);

        // When written in place, the file itself is locked.
        fs::hard_link(&path, folder.join("other")).unwrap();
        let first = Writer::open(&path).unwrap();
        let message = format!("{:#}", Writer::open_within(&path, timeout).unwrap_err());
        assert!(message.contains("r.json: another process has"), "{message}");
        assert!(message.contains("holds it locked"), "{message}");
        first.write(b"1st").unwrap();
        let second = Writer::open(&folder.join("other")).unwrap();
        assert_eq!(second.current().unwrap().as_deref(), Some(&b"1st"[..]));
        drop(second);
        let left = fs::read_dir(&folder).unwrap().count();
        assert_eq!(left, 2);
        fs::remove_dir_all(&folder).unwrap();
    }
}
