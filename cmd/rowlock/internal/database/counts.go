package database

type ResourceCount struct {
	Resource string `json:"resource"`
	Objects  int64  `json:"objects"`
	Bytes    int64  `json:"bytes"`
}
