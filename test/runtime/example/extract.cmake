# Writes the first C block of docs/c-api.md to OUT, so that what the page shows is what the test compiles.
file(READ ${PAGE} page)
string(REGEX MATCH "```c\n(.*)" found "${page}")
string(FIND "${CMAKE_MATCH_1}" "```" end)
string(SUBSTRING "${CMAKE_MATCH_1}" 0 ${end} program)
file(WRITE ${OUT} "${program}")
