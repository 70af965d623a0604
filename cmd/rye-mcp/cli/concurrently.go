package cli

import "sync"

// concurrently calls do for each number below n, so many at the same time, and
// returns when all calls have.
func concurrently(n, most int, do func(i int)) {
	var group sync.WaitGroup
	slots := make(chan struct{}, most)
	for i := range n {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	group.Wait()
}
