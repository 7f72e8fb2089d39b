"""Released programs against the present one: frozen schema files, procedures that old programs can call, deploys."""
