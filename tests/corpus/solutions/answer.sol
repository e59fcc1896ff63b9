Route #1: 1
Route #2: 2 3
Cost 12.638751371616378
