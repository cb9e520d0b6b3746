//! How strongly a column's name says that it tells whose a reading is.

use crate::words::{FLAGS, IDS, has, words};

/// How strongly a word says that a column tells whose a reading is.
const OWNERS: &[(u32, &[&str])] = &[
    (
        100,
        &[
            "user",
            "userid",
            "uid",
            "person",
            "personid",
            "subject",
            "subjectid",
            "patient",
            "patientid",
            "participant",
            "participantid",
            "pid",
            "respondent",
            "owner",
            "customer",
            "customerid",
            "client",
            "clientid",
            "member",
            "athlete",
            "rider",
            "driver",
            "student",
            "employee",
            "player",
            "household",
            "householdid",
            "lclid",
            "animal",
            "individual",
            "account",
            "acct",
            "konto",
            "ktonr",
            "ktono",
            "kundenkonto",
            "vertragskonto",
            "vertragsnr",
            "vertragsnummer",
            "contractid",
            "contractno",
            "contractnr",
            "contractnumber",
            "policyid",
            "policyno",
            "policynumber",
            "membershipid",
            "membershipno",
            "membershipnumber",
            "cust",
            "kd",
            "pat",
            "debitor",
            "debtor",
            "responseid",
            "volunteer",
            "who",
            "wer",
            "caller",
            "anrufer",
            "msisdn",
            "imsi",
            "subscriber",
            "worker",
            "kunde",
            "proband",
            "teilnehmer",
            "nutzer",
            "vid",
            "resident",
            "fahrer",
            "haushalt",
            "mitarbeiter",
            "versuchsperson",
            "utilisateur",
            "menage",
            "ménage",
            "foyer",
            "abonné",
            "usuario",
            "usuário",
            "paciente",
            "hogar",
            "cliente",
            "utente",
            "paziente",
            "gebruiker",
            "huishouden",
            "klant",
            "deelnemer",
            "medewerker",
            "mitglied",
            "kunden",
            "personal",
            "pers",
            "schüler",
            "mieter",
            "bewohner",
            "gast",
            "guest",
            "tenant",
            "pupil",
            "child",
            "cow",
            "kuh",
            "vache",
            "matricule",
            "élève",
            "adhérent",
            "empleado",
            "alumno",
            "klient",
            "klienta",
            "nickname",
            "nurse",
            "runner",
            "teacher",
            "doctor",
            "staff",
            "technician",
            "username",
            "alias",
        ],
    ),
    (
        80,
        &[
            "station",
            "stations",
            "stationsid",
            "sensor",
            "sensorid",
            "stationid",
            "stationname",
            "stn",
            "site",
            "siteid",
            "siteno",
            "sitename",
            "location",
            "locationid",
            "meter",
            "meterid",
            "nmi",
            "mote",
            "moteid",
            "node",
            "nodeid",
            "ip",
            "host",
            "hostname",
            "house",
            "home",
            "building",
            "dwelling",
            "apartment",
            "room",
            "vehicle",
            "vehicleid",
            "bus",
            "car",
            "carpark",
            "parkhaus",
            "trip",
            "tripid",
            "plant",
            "well",
            "buoy",
            "gauge",
            "segment",
            "segmentid",
            "messstelle",
            "standort",
            "zaehler",
            "zähler",
            "estacion",
            "estación",
            "place",
            "spot",
            "shop",
            "store",
            "stream",
            "streamid",
            "plate",
            "vessel",
            "mmsi",
            "turbine",
            "inverter",
            "fahrzeug",
            "wohnung",
            "gebäude",
            "zählpunkt",
            "capteur",
            "compteur",
            "vehicule",
            "véhicule",
            "medidor",
            "contador",
            "vivienda",
            "vehículo",
            "sensore",
            "contatore",
            "stazione",
            "voertuig",
            "meetpunt",
        ],
    ),
    (
        60,
        &[
            "id",
            "gerät",
            "dispositivo",
            "appareil",
            "device",
            "deviceid",
            "devid",
            "mac",
            "imei",
            "serial",
            "logger",
            "probe",
            "tagid",
            "beacon",
            "bike",
            "bikeid",
            "karte",
            "cardno",
            "cardnr",
            "cardid",
            "cardnumber",
            "cardserial",
            "rfid",
            "rfidtag",
            "badge",
            "badgeno",
            "badgeid",
            "chipkarte",
            "tarjeta",
            "carte",
            "eartag",
            "kennzeichen",
        ],
    ),
    (
        50,
        &[
            "country", "region", "city", "county", "state", "land", "district", "zone", "area",
            "province", "fips", "geoid",
        ],
    ),
];

/// Names of what devices run: never an owner's.
pub(crate) const VERSIONS: &[&str] =
    &["build", "firmware", "fw", "release", "revision", "software", "ver", "version"];

/// How strongly a name says that its column tells whose a reading is: 0 to 100. A name of two
/// words counts by each of them and by both together. A name that ends in another word, such as `user
/// agent`, says something about the owner, and so does a flag such as `is_owner` or a type.
pub(crate) fn owner_score(name: &str) -> u32 {
    /// First words of names of flags.
    const ASKS: &[&str] = &["is", "has", "ist", "hat"];
    let words = words(name);
    let pairs: Vec<String> = words.windows(2).map(|pair| pair.concat()).collect();
    let within = |list: &[&str], word: &String| list.contains(&word.as_str());
    let ends = words.iter().last().into_iter().chain(pairs.last());
    let owners = |word: &String| OWNERS.iter().any(|(_, list)| within(list, word));
    let stems: Vec<String> = words.last().map_or_else(Vec::new, |word| stems(word));
    let names = ends.into_iter().any(|word| owners(word) || within(IDS, word));
    let names = names || stems.iter().any(owners);
    let asks = words.len() > 1 && within(ASKS, &words[0]);
    let numbered = words.iter().rev().find(|word| !within(NUMBERS, word));
    let version = numbered.is_some_and(|word| within(VERSIONS, word));
    if !names || asks || version || words.iter().any(|word| within(FLAGS, word)) {
        return 0;
    }
    let all = || words.iter().chain(&pairs).chain(&stems);
    let fits = |list: &[&str]| all().any(|word| within(list, word));
    OWNERS.iter().find(|(_, list)| fits(list)).map_or(0, |(score, _)| *score)
}

/// What is left of a compound without its end: `zähler` of `zählernummer`, `kunde` of
/// `kundennr`.
fn stems(word: &str) -> Vec<String> {
    const ENDS: &[&str] = &["nummer", "nr", "kennung", "name", "code", "id"];
    const JOINTS: &[&str] = &["", "n", "en", "s"];
    let rests = ENDS.iter().filter_map(|end| word.strip_suffix(end));
    rests
        .flat_map(|rest| JOINTS.iter().filter_map(move |joint| rest.strip_suffix(joint)))
        .map(str::to_owned)
        .collect()
}

/// Words for several people, some of them for one as well: numbers below them count.
const MANY: &[&str] = &[
    "abonnés",
    "alumnos",
    "anwesende",
    "attendees",
    "besucher",
    "bewohner",
    "children",
    "clientes",
    "clienti",
    "clients",
    "crew",
    "customers",
    "deelnemers",
    "drivers",
    "elevi",
    "employees",
    "employés",
    "fahrer",
    "fahrgäste",
    "gäste",
    "guests",
    "headcount",
    "households",
    "hogares",
    "inhabitants",
    "kinder",
    "klanten",
    "kunden",
    "medewerkers",
    "members",
    "mieter",
    "mitarbeiter",
    "mitglieder",
    "nutzer",
    "participants",
    "passagiere",
    "passengers",
    "patienten",
    "patients",
    "people",
    "personal",
    "personas",
    "personen",
    "personnel",
    "persons",
    "players",
    "probanden",
    "residents",
    "riders",
    "schüler",
    "staff",
    "students",
    "subscribers",
    "teilnehmer",
    "tenants",
    "usagers",
    "users",
    "usuarios",
    "utilisateurs",
    "visiteurs",
    "visitors",
    "workers",
    "zuschauer",
];

/// Whether numbers in a column of this name may count people.
pub(crate) fn may_count_people(name: &str) -> bool {
    words(name).last().is_some_and(|word| MANY.contains(&word.as_str()))
}

/// Whether a column of numbers may be an owner's by its name: one word, or one that says that it
/// is a number of something.
pub(crate) fn names_a_number(name: &str) -> bool {
    words(name).len() == 1 || has(name, NUMBERS)
}

/// Whether a name ends as that of a number, and no other word says what it names.
pub(crate) fn is_vague(name: &str) -> bool {
    let mut words = words(name);
    let id = words.iter().position(|word| word == "id").map(|at| words.remove(at));
    id.is_some() && !words.is_empty() && owner_score(&(words.join(" ") + " name")) == 0
}

/// Words that say that a column numbers things.
pub(crate) const NUMBERS: &[&str] =
    &["id", "no", "nr", "num", "number", "code", "key", "fips", "geoid"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_owners_and_of_numbers_that_identify_are_known() {
        assert_eq!(owner_score("Survey ResponseID"), 100);
        assert_eq!(owner_score("STATIONS_ID"), 80);
        assert_eq!(owner_score("response time"), 0);
        assert!(names_a_number("site_no") && !names_a_number("meter reading"));
        assert_eq!((owner_score("car_park"), owner_score("county_fips")), (80, 50));
        assert_eq!(owner_score("subject#"), 100);
        assert_eq!((owner_score("STN"), owner_score("stream")), (80, 80));
        assert_eq!(owner_score("Source Device ID"), 60);
        assert!(may_count_people("Anzahl Kunden") && may_count_people("num_passengers"));
        assert!(!may_count_people("staff_id") && !may_count_people("Kundennummer"));
        for other in [
            "Temperature",
            "member_casual",
            "store_and_fwd_flag",
            "User Agent",
            "Customer Type",
            "isOwner",
            "firmware_id",
        ] {
            assert_eq!(owner_score(other), 0, "{other}");
        }
    }
}
