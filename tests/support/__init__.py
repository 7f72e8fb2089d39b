"""What the tests share: stores to run on, a laboratory for raw SQL, holders, threads, programs, polling."""
