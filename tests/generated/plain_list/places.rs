//! Places in measurements, and regions in queries, drawn from their own random stream.

use bson::{Bson, Document, bson, doc};

use super::data::pick;
use super::queries::Query;
use crate::support::Random;

/// Places for the measurements and the queries of one case.
pub struct Places {
    random: Random,
    /// The locations, how they are written, and the fields that have them; `None` in most cases.
    of: Option<(Vec<&'static str>, u64, [f64; 2])>,
}

impl Places {
    pub fn new(seed: u64) -> Places {
        let random = Random::new(seed ^ 0x6E0);
        let fields = [vec!["c"], vec!["c"], vec!["c", "o"], vec!["m"]];
        let near = [[0.0, 0.0], [10.0, 50.0], [180.0, 0.0], [-60.0, 89.5], [-179.5, -45.0]];
        let of = random.chance(20).then(|| (pick(&random, &fields).clone(), random.below(5), *pick(&random, &near)));
        Places { random, of }
    }

    /// Replaces fields of most measurements by places.
    pub fn among(&self, rows: &mut [Document]) {
        let Some((fields, form, near)) = &self.of else { return };
        for row in rows {
            for field in fields {
                if row.contains_key(field) && self.random.chance(85) {
                    row.insert(*field, self.value(*form, *near));
                }
            }
        }
    }

    /// Adds a region to some queries.
    pub fn ask(&self, query: &mut Query) {
        let Some((fields, form, near)) = &self.of else { return };
        if !self.random.chance(70) {
            return;
        }
        let path = match form {
            4 => format!("{}.a", pick(&self.random, fields)),
            _ => (*pick(&self.random, fields)).to_owned(),
        };
        let test = doc! { path: self.test(*near) };
        let filter = std::mem::take(&mut query.filter);
        query.filter = match self.random.below(6) {
            0 => doc! { "$or": [test, filter] },
            1 => doc! { "$and": [test, filter] },
            2 => doc! { "$nor": [test] },
            _ => test,
        };
    }

    fn around(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        let offset = || f64::from(self.random.below(17) as u32) / 4.0 - 2.0;
        let lng = (x + offset() + 540.0).rem_euclid(360.0) - 180.0;
        [lng, (y + offset()).clamp(-90.0, 90.0)]
    }

    fn value(&self, form: u64, near: [f64; 2]) -> Bson {
        let [x, y] = self.around(near);
        let point = bson!({ "type": "Point", "coordinates": [x, y] });
        match form {
            0 | 1 => point,
            2 => bson!([x, y]),
            4 => bson!({ "a": point }),
            _ => match self.random.below(8) {
                0 => bson!({ "lng": x, "lat": y }),
                1 => bson!({ "lat": y, "lng": x }),
                2 => bson!([[x, y], [y / 2.0, y]]),
                3 => bson!([x, y, [y / 2.0, x / 2.0]]),
                4 => bson!({ "type": "LineString", "coordinates": [[x, y], [y / 2.0, y / 2.0]] }),
                5 => bson!([point, "x"]),
                6 => bson!({ "type": "Polygon", "coordinates": [[[x, y], [0, 0], [1, 40], [x, y]]] }),
                _ => point,
            },
        }
    }

    fn test(&self, near: [f64; 2]) -> Bson {
        let ([x, y], size) = (self.around(near), *pick(&self.random, &[0.5, 1.0, 3.0]));
        let corner = |dx: f64, dy: f64| {
            bson!([(x + dx * size + 540.0).rem_euclid(360.0) - 180.0, (y + dy * size).clamp(-90.0, 90.0)])
        };
        let (a, b, c) = (corner(-1.0, -1.0), corner(1.0, -1.0), corner(0.0, 1.0));
        let ring = bson!([a.clone(), b.clone(), c.clone(), a.clone()]);
        let triangle = bson!({ "$geometry": { "type": "Polygon", "coordinates": [ring] } });
        match self.random.below(8) {
            // A corner that is clamped at a pole may coincide with another one.
            0 | 1 if y.abs() < 85.0 => bson!({ "$geoWithin": triangle }),
            2 if y.abs() < 85.0 => bson!({ "$geoIntersects": triangle }),
            3 => bson!({ "$geoIntersects": { "$geometry": { "type": "Point", "coordinates": [x, y] } } }),
            4 => bson!({ "$geoWithin": { "$box": [a, c] } }),
            5 => bson!({ "$geoWithin": { "$polygon": [[x - size, y - size], [x + size, y - size], [x, y + size]] } }),
            6 => bson!({ "$geoWithin": { "$center": [[x, y], size] } }),
            _ => bson!({ "$geoWithin": { "$centerSphere": [[x, y], size / 50.0] } }),
        }
    }
}
