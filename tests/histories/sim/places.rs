//! Places in measurements and metadata, geospatial indexes, and region filters. All are drawn from their own random stream, so that the
//! histories of the seeds stay what they were.

use bson::{Bson, Document, bson, doc};

use crate::support::Random;

/// The places of measurements and series in one history.
pub struct Places(Random);

impl Places {
    pub fn new(seed: u64) -> Places {
        Places(Random::new(seed ^ 0x91ACE))
    }

    /// Gives most measurements a place, and most metadata objects a place in each of two forms.
    pub fn put(&self, row: &mut Document) {
        if self.0.chance(70) {
            row.insert("p", point(self.pair()));
        }
        if let Ok(meta) = row.get_document_mut("m")
            && self.0.chance(70)
        {
            let pair = self.pair();
            let rest = std::mem::take(meta);
            // Sorted by name, as metadata is returned.
            meta.insert("at", point(pair));
            meta.extend(rest);
            meta.insert("xy", bson!([pair[0], pair[1]]));
        }
    }

    /// Sometimes replaces an index by a geospatial or a wildcard one.
    pub fn index(&self, has_meta: bool) -> Option<Document> {
        let mut specs = vec![doc! { "p": "2dsphere" }, doc! { "n": 1, "p": "2dsphere" }];
        if has_meta {
            specs.extend([
                doc! { "m.at": "2dsphere", "t": 1 },
                doc! { "m.xy": "2d" },
                doc! { "m.$**": 1 },
                doc! { "m.id.$**": -1 },
            ]);
        }
        let key = specs.swap_remove(self.0.below(specs.len() as u64) as usize);
        self.0.chance(50).then(|| doc! { "key": key })
    }

    /// Sometimes replaces a filter by one for a region.
    pub fn filter(&self) -> Option<Document> {
        let ([x, y], size) = (self.pair(), [0.4, 1.3, 4.0][self.0.below(3) as usize]);
        let corners = [[x - size, y - size], [x + size, y - size], [x, y + size], [x - size, y - size]];
        let ring: Vec<Bson> = corners.iter().map(|[x, y]| bson!([*x, *y])).collect();
        let (path, region) = match self.0.below(6) {
            0 | 1 => ("p", doc! { "$geometry": { "type": "Polygon", "coordinates": [ring] } }),
            2 => ("p", doc! { "$centerSphere": [[x, y], size / 60.0] }),
            3 => ("m.at", doc! { "$centerSphere": [[x, y], size / 60.0] }),
            4 => ("m.xy", doc! { "$box": [[x - size, y - size], [x + size, y + size]] }),
            _ => ("m.at", doc! { "$geometry": { "type": "Polygon", "coordinates": [ring] } }),
        };
        self.0.chance(20).then(|| doc! { path: { "$geoWithin": region } })
    }

    /// A place on a small grid, so that many are equal.
    fn pair(&self) -> [f64; 2] {
        [self.0.below(9) as f64 - 4.0, self.0.below(9) as f64 + 40.0]
    }
}

/// The document with its fields sorted by name.
fn point([lng, lat]: [f64; 2]) -> Bson {
    bson!({ "coordinates": [lng, lat], "type": "Point" })
}
