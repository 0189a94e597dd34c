module berth/bench/echo

go 1.24
