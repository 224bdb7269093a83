"""The review's database: tables, migrations, sessions."""
