module warpline.example/client

go 1.18
