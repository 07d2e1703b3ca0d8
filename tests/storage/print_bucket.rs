//! The example that prints buckets, on buckets of every version.

#[allow(dead_code)]
#[path = "../../examples/print_bucket.rs"]
mod example;

use example::describe;
use timepail::column::ColumnWriter;
use timepail::value::{DocWriter, Kind, OwnedValue, Value};

fn bucket(version: i32) -> Vec<u8> {
    let mut writer = DocWriter::new();
    writer.object_id("_id", &[7; 12]).begin_doc("control").int32("version", version);
    writer.begin_doc("min").date("t", 1_000).end().begin_doc("max").date("t", 10_000).end();
    if version != 1 {
        writer.int32("count", 10);
    }
    writer.end().string("meta", "roof").begin_doc("data");
    let times: Vec<_> = (1..=10).map(|i| Some(OwnedValue::date(1_000 * i))).collect();
    let temperatures: Vec<_> = (0..10).map(|i| (i != 4).then(|| OwnedValue::double(20.5 + f64::from(i)))).collect();
    for (name, cells) in [("t", times), ("temperature", temperatures)] {
        if version == 1 {
            writer.begin_doc(name);
            for (row, cell) in cells.iter().enumerate().filter_map(|(row, cell)| Some((row, cell.as_ref()?))) {
                writer.value(&row.to_string(), cell.view());
            }
            writer.end();
        } else {
            let mut column = ColumnWriter::new();
            cells.iter().for_each(|cell| match cell {
                Some(value) => column.push(value.view()),
                None => column.skip(1),
            });
            let column = column.finish();
            let binary = [&(column.len() as i32).to_le_bytes()[..], &[7], &column].concat();
            writer.value(name, Value::parse(Kind::Binary, &binary).unwrap());
        }
    }
    writer.end();
    writer.finish().into_bytes()
}

#[test]
fn buckets_of_all_versions_are_printed_alike() {
    for version in [1, 2, 3] {
        let text = describe(&bucket(version)).unwrap();
        let expected = [
            "bucket ObjectId(070707070707070707070707), ",
            &format!("control.version: {version}\n"),
            "control.min: {",
            "meta: \"roof\"\n",
            "bytes, 10 elements, date, ",
            ": Date(1000), Date(2000), Date(3000) ... Date(8000), Date(9000), Date(10000)\n",
            "10 elements (1 missing), double, ",
            ": 20.5, 21.5, 22.5 ... 27.5, 28.5, 29.5\n",
        ];
        for part in expected {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }
}

#[test]
fn a_file_of_several_buckets_is_printed_to_its_end_and_a_cut_one_is_refused() {
    let file = [bucket(1), bucket(2), bucket(9)].concat();
    let text = describe(&file).unwrap();
    assert_eq!(text.matches("bucket ObjectId").count(), 3);
    assert_eq!(text.matches("unreadable, control.version is not 1, 2 or 3").count(), 2);
    assert!(describe(&file[..file.len() - 1]).unwrap_err().contains("it is truncated"));
}

#[test]
fn a_damaged_column_is_named_and_the_others_are_printed() {
    let mut bytes = bucket(2);
    // The first literal of the time column, after its name, length and subtype.
    let at = bytes.windows(3).position(|window| window == [Kind::Binary.byte(), b't', 0]).unwrap() + 8;
    assert_eq!(bytes[at], Kind::Date.byte());
    bytes[at] = 0x20;
    let text = describe(&bytes).unwrap();
    assert!(text.contains("data.t: unreadable, "), "{text}");
    assert!(text.contains("data.temperature: "), "{text}");
}
