module slow

go 1.21
