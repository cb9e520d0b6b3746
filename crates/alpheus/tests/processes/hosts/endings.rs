//! A plan that has ended no longer holds anyone's data, even if some controllers missed the end.

use super::world::{QUERY, Town, at};

#[test]
fn a_host_that_missed_a_plans_end_takes_part_in_the_next() {
    let mut town = Town::new();
    let (mut hall, [mut first, mut second], [mut alice, mut bob]) = town.two_houses();
    // The second host is away when the query ends; so is the service, soon after.
    let round = hall.manager.drop_query(at(2), "Readings").unwrap().unwrap();
    hall.carry(at(2), round, &mut [&mut first]);
    let disk = hall.stop();
    let mut hall = town.hall(disk);
    for house in [&mut first, &mut second] {
        house.tell(&mut hall, &town);
    }
    let round = hall.ask(QUERY, at(3), &mut town.rng);
    hall.carry(at(3), round, &mut [&mut first, &mut second]);
    let plan = hall.manager.service.running()[0];
    let refusals: Vec<_> = hall.manager.service.refusals(&plan).collect();
    assert!(refusals.is_empty(), "{refusals:?}");
    let mut rows = Vec::new();
    for second_of in 4..10 {
        town.send(&hall, &mut alice, second_of, 1);
        town.send(&hall, &mut bob, second_of, 2);
        let time = at(second_of + 1);
        let round = hall.turn(time);
        rows.extend(hall.carry(time, round, &mut [&mut first, &mut second]).rows);
    }
    let populations: Vec<u32> = rows.iter().map(|row| row.population).collect();
    assert!(populations.contains(&2), "{rows:?}");
}
