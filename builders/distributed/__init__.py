"""What builders for engines that spread work over many tasks have in common: a plan cut into levels, and what moves."""
