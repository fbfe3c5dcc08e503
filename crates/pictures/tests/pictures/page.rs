//! Tests of the data that pages have.

use std::collections::BTreeSet;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use oneport::{CostModel, Request};
use oneport_pictures::{Caption, Shown, Unit, page};

/// The data of a page, unpacked as the browser does.
fn data_in(page: &str) -> serde_json::Value {
    let (_, data) = page.split_once("id=\"data\">").unwrap();
    let (data, _) = data.split_once("</script>").unwrap();
    let packed = BASE64_STANDARD.decode(data.trim()).unwrap();
    let text = miniz_oxide::inflate::decompress_to_vec_zlib(&packed).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// Messages of recursive halving carry parts that overlap: colours are those of the finest.
#[test]
fn colours_of_overlapping_parts_mean_one_thing() {
    let schedule = Request::allreduce(4, 16).plan("rabenseifner").unwrap();
    let cost = CostModel::new(1.0, 1.0);
    let shown = Shown {
        name: "rabenseifner",
        schedule: &schedule,
        cost: &cost,
    };
    let page = &data_in(&page(&[shown], Unit::Plain, &Caption::new("rabenseifner")).unwrap());
    let page = &page["schedules"][0];
    let entries = page["legend"]["entries"].as_array().unwrap();
    let elements: Vec<&str> = entries.iter().map(|e| e[1].as_str().unwrap()).collect();
    let expected = ["0-3", "4-7", "8-11", "12-15"];
    for (i, (name, expected)) in elements.iter().zip(expected).enumerate() {
        assert_eq!(*name, format!("part {i} (elements {expected})"));
        assert_eq!(entries[i][0], i);
    }
    let (parts, nodes) = (&page["parts"], &page["nodes"]);
    for (part, color) in nodes["part"]
        .as_array()
        .unwrap()
        .iter()
        .zip(nodes["color"].as_array().unwrap())
    {
        let name = parts[part.as_u64().unwrap() as usize].as_str().unwrap();
        let first = name
            .split(' ')
            .nth(1)
            .unwrap()
            .split(['-', ','])
            .next()
            .unwrap();
        assert_eq!(first, color.to_string(), "{name}");
    }
    // Buffers have no other colours.
    let of_cells = page["buffers"]["color"].as_array().unwrap().iter();
    let of_cells: BTreeSet<u64> = of_cells.map(|color| color.as_u64().unwrap()).collect();
    assert_eq!(of_cells, (0..4).collect());
}
