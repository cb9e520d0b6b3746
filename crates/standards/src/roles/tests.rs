//! Which column is taken for the owner and the time.

use super::*;

fn noted<T>(value: T) -> Clause<T> {
    Clause { value, at: String::new() }
}

fn table(name: &str, columns: &[(&str, &str)]) -> Table {
    let column = |(name, kind): &(&str, &str)| Column {
        name: noted((*name).to_owned()),
        types: vec![noted(kind.trim_end_matches(" key").to_owned())],
        key: kind.ends_with(" key").then(|| noted(true)),
        ..Column::default()
    };
    let columns = columns.iter().map(column).collect();
    Table { name: noted(name.to_owned()), columns, ..Table::default() }
}

fn found(choice: Choice, table: &Table) -> String {
    match choice {
        Choice::Column(at) => table.columns[at].name.value.clone(),
        Choice::Likely(at, other) => format!("{} or {other}", table.columns[at].name.value),
        Choice::Several(names) if names.len() == 1 => format!("({})", names.join("")),
        Choice::Several(names) => names.join("|"),
        Choice::None => "-".to_owned(),
    }
}

#[test]
fn the_id_of_something_else_names_no_owner() {
    for (columns, expected) in [
        ("order_id customer_id customer_type_id", "customer_id"),
        ("user_type_id amount", "-"),
        ("customer_address_id zip", "-"),
        ("customer_order_id qty", "-"),
        ("device_type_id reading", "-"),
        ("order_id account_manager_id", "(account_manager_id)"),
        ("sale_id created_by_user_id", "(created_by_user_id)"),
        ("x parent_account_id", "(parent_account_id)"),
        ("x product_owner_id", "(product_owner_id)"),
        ("x referrer", "(referrer)"),
        ("x owner_id", "owner_id"),
        ("billing_customer_id created_by_user_id", "billing_customer_id"),
        ("user_id device_id", "user_id|device_id"),
    ] {
        let all: Vec<_> = columns.split(' ').map(|name| (name, "string")).collect();
        let table = table("sales", &all);
        assert_eq!(found(owner(&table), &table), expected, "{columns}");
    }
    let keyed = [("id", "string key"), ("x", "string")];
    for (name, expected) in
        [("users", "id"), ("dim_customers_v2", "id"), ("user_types", "-"), ("customer_orders", "-")]
    {
        let table = table(name, &keyed);
        assert_eq!(found(owner(&table), &table), expected, "{name}");
    }
}

#[test]
fn a_moment_before_or_after_the_event_is_only_asked_about() {
    for (columns, expected) in [
        ("deleted_at", "(deleted_at)"),
        ("last_login", "(last_login)"),
        ("next_sale_at", "(next_sale_at)"),
        ("created_at", "created_at"),
        ("created_at deleted_at", "created_at"),
        ("last_login sold_at", "sold_at"),
    ] {
        let all: Vec<_> = columns.split(' ').map(|name| (name, "timestamp")).collect();
        let table = table("sales", &all);
        assert_eq!(found(time(&table, &Contract::default()), &table), expected, "{columns}");
    }
}

#[test]
fn owner_and_time_are_found_where_they_can_be() {
    let text = "string";
    for (table, owner_is, time_is) in [
        (
            table(
                "orders",
                &[
                    ("order_id", "string key"),
                    ("order_timestamp", "timestamp"),
                    ("customer_id", text),
                    ("processed_timestamp", "timestamp"),
                ],
            ),
            "customer_id",
            "order_timestamp",
        ),
        (
            table("users", &[("id", "string key"), ("last_login", "timestamp")]),
            "id",
            "(last_login)",
        ),
        (table("User", &[("firstName", text), ("age", "int")]), "-", "-"),
        (table("Client", &[("id", text), ("countryCode", text)]), "id", "-"),
        (
            table("trips", &[("driverId", text), ("riderId", text), ("ts", "long")]),
            "driverId|riderId",
            "ts",
        ),
        (table("line_items", &[("order_id", text), ("number_of_users", "int")]), "-", "-"),
        (table("people", &[("person_id", text), ("date_of_birth", "date")]), "person_id", "-"),
        (
            table("a", &[("created_at", "timestamp"), ("updated_at", "timestamp")]),
            "-",
            "created_at|updated_at",
        ),
    ] {
        assert_eq!(found(owner(&table), &table), owner_is, "{}", table.name.value);
        assert_eq!(
            found(time(&table, &Contract::default()), &table),
            time_is,
            "{}",
            table.name.value
        );
    }
}

#[test]
fn a_person_named_in_a_row_comes_before_the_rows_own_key() {
    for (name, columns, expected) in [
        ("customer_contacts", "id/key customer_id amount", "customer_id or id"),
        ("people_join_contacts", "id/key person_id", "person_id or id"),
        ("device_users", "id/key user_id device_id", "user_id|device_id"),
        ("user_devices", "device_id/key user_id", "user_id or device_id"),
        ("user_devices", "device_id/key user_id member_id", "device_id"),
        ("devices", "device_id/key size", "device_id"),
        ("users", "id/key manager_id", "id"),
        ("users", "user_id/key account_id", "user_id"),
        ("users", "id name", "id"),
        ("users", "id phone", "id|phone"),
        ("users", "staff_id/key uuid", "staff_id"),
    ] {
        let all: Vec<_> = columns.split(' ').map(|own| own.split_once('/')).collect();
        let all: Vec<_> = all
            .iter()
            .zip(columns.split(' '))
            .map(|(key, own)| key.map_or((own, "string"), |(own, _)| (own, "string key")))
            .collect();
        let table = table(name, &all);
        assert_eq!(found(owner(&table), &table), expected, "{name}: {columns}");
    }
}

#[test]
fn the_moment_of_storing_is_no_event_although_its_age_is_measured() {
    let clocks = |text: &str| text.split_whitespace().map(|own| noted(own.to_owned())).collect();
    for (columns, aged, stated, expected) in [
        ("order_ts ingested_at", "orders.ingested_at", "", "order_ts or ingested_at"),
        ("ships_at ingested_at", "ingested_at", "", "ships_at|ingested_at"),
        ("ingested_at", "orders.ingested_at", "", "ingested_at"),
        ("order_ts closed_at", "orders.closed_at", "", "closed_at"),
        ("order_ts created_at", "", "created_at", "created_at"),
    ] {
        let all: Vec<_> = columns.split(' ').map(|name| (name, "timestamp")).collect();
        let table = table("orders", &all);
        let (clocks, event_times) = (clocks(aged), clocks(stated));
        let contract = Contract { clocks, event_times, ..Contract::default() };
        assert_eq!(found(time(&table, &contract), &table), expected, "{columns}");
    }
}
