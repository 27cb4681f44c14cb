//! The migrations inside the programs are those that sqlx reads from the folders: databases have their checksums.

use chassis_derive::migrations;
use sqlx::migrate::Migrator;

use crate::{PROGRAMS, root};

#[tokio::test]
async fn a_program_has_the_migrations_that_sqlx_reads_from_its_folder() {
    let compiled = [
        migrations!("migrations"),
        migrations!("../../gateway/migrations"),
        migrations!("../../svc-automation/migrations"),
        migrations!("../../svc-billing/migrations"),
        migrations!("../../svc-crm/migrations"),
        migrations!("../../svc-relations/migrations"),
        migrations!("../../svc-support/migrations"),
        migrations!("../../svc-work/migrations"),
    ];
    let mut without_transaction = 0;
    for (program, compiled) in PROGRAMS.into_iter().zip(compiled) {
        let folder = Migrator::new(root().join(program).join("migrations")).await.unwrap();
        assert!(!folder.migrations.is_empty(), "{program}");
        assert_eq!(compiled.migrations.len(), folder.migrations.len(), "{program}");
        for (compiled, read) in compiled.iter().zip(folder.iter()) {
            let version = read.version;
            assert_eq!(compiled.version, version, "{program}");
            assert_eq!(compiled.description, read.description, "{program} {version}");
            assert_eq!(compiled.migration_type, read.migration_type, "{program} {version}");
            assert_eq!(compiled.sql.as_str(), read.sql.as_str(), "{program} {version}");
            assert_eq!(compiled.checksum, read.checksum, "{program} {version}");
            assert_eq!(compiled.no_tx, read.no_tx, "{program} {version}");
            without_transaction += usize::from(compiled.no_tx);
        }
    }
    assert!(without_transaction >= 16, "indexes are built without one: {without_transaction}");
}
