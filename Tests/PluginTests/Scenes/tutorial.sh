#: after kill %1
test -e ~/Documents/bill.pdf
