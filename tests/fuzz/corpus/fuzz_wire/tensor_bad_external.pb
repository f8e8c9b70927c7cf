Baj
location	tensor.pbp